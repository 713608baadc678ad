"""Sentences that hold a secret: templates times generated values, written as people write them.

``SAMPLES`` is the set that the gate is measured on: every one of them must be masked whole.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.unit import secret_values as made

Write = Callable[[str], str]


@dataclass(frozen=True)
class Sample:
    """``secret`` stands in ``text`` as it is written there; ``name`` says which kind, in which language."""

    name: str
    language: str
    text: str
    secret: str
    keeps: tuple[str, ...] = ()


def bare(text: str) -> str:
    """Letters and digits only, narrow and small: how a leak is looked for."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text)).casefold()


# how a number is written


def grouped(sizes: tuple[int, ...], mark: str) -> Write:
    def write(number: str) -> str:
        pieces, at = [], 0
        for size in sizes:
            pieces.append(number[at : at + size])
            at += size
        return mark.join(piece for piece in (*pieces, number[at:]) if piece)

    return write


def plain(number: str) -> str:
    return number


def wide(number: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if char.isalnum() else char for char in number)


def with_invisible(number: str) -> str:
    return number[:4] + "\u200b" + number[4:9] + "\u2060" + number[9:]


FOURS = (4, 4, 4, 4, 4, 4, 4)
CARD_WAYS = (plain, grouped(FOURS, " "), grouped(FOURS, "-"), wide, grouped(FOURS, "\n"), grouped(FOURS, "\u00a0"), grouped(FOURS, "."), with_invisible, grouped(FOURS, " - "), grouped((1,) * 20, " "))  # fmt: skip
IBAN_WAYS = (
    plain,
    grouped(FOURS, " "),
    str.lower,
    grouped(FOURS, "-"),
    wide,
    grouped(FOURS, "\u00a0"),
    with_invisible,
)
CN_WAYS = (plain, grouped((6, 8), " "), wide, str.lower, grouped((6, 8), "-"), grouped((6, 4, 4), " "), with_invisible, grouped((6, 8), "\n"))  # fmt: skip
SSN_WAYS = (plain, lambda n: n.replace("-", " "), wide, with_invisible, lambda n: n.replace("-", "\u2013"))
NINO_WAYS = (plain, grouped((2, 2, 2, 2), " "), str.lower, wide, grouped((2, 2, 2, 2), "-"), with_invisible)
TAX_WAYS = (plain, grouped((2, 3, 3), " "), plain, grouped((2, 3, 3), "/"), wide)
ONE_WAY = (plain,)

# sentences, for each name: Chinese and English; {} is the secret

CN_ID = (
    ["我的身份证号是{}", "身份證號碼：{}，請幫我登記", "{}", "帮我填一下表，{}，姓名张伟", "证件号{}，麻烦核对", "我身份证“{}”别外传", "号码{}是我本人的", "订票用这个：{}。谢谢",
     "他问我要身份证，我就发了{}过去", "身份证（{}）已经过期了，要换新的", "身分證\n{}", "实名信息 张伟 {} 男"],
    ["my Chinese ID is {}", "ID number: {}", "{}", "the hotel asked for it, so here: {}, thanks", "resident identity card {} (mine)", "please book with '{}' and my name", "Use {} for the visa form.", "ID CARD NO {}",
     "I typed {} by mistake", "both {} and my phone are needed", "national id\n{}", "Zhang Wei, {}, male"],
)  # fmt: skip
US_SSN = (
    ["我的美国社保号是{}", "SSN：{}", "{}", "社会安全号码{}，报税要用", "报税填{}就行", "他们要我的SSN，就是“{}”", "表格里写{}，别写错", "我在美国的号是{}，别告诉别人",
     "社安號碼（{}）請保密", "号码是\n{}"],
    ["my SSN is {}", "Social Security number: {}", "{}", "ssn {} please", "the form wants {}, I think", "it's '{}' on the card", "My social is {}. Keep it safe!", "SOCIAL SECURITY NO. {}",
     "last year I wrote {} there", "(taxpayer {})", "social security\n{}"],
)  # fmt: skip
UK_NINO = (
    ["我在英国的NI号是{}", "英国国民保险号：{}", "{}", "雇主要{}，我发给他了", "NI number是{}，对吗", "写的是“{}”", "国家保险号{}，入职用", "号码（{}）在信里", "這是我的號碼：{}", "NI\n{}"],
    ["my NI number is {}", "National Insurance: {}", "{}", "NINO {} for payroll", "HR asked for '{}' today", "ni no. {}", "It says {} on my payslip.", "use {} when you call HMRC", "(NI {})", "national insurance\n{}"],
)  # fmt: skip
DE_TAX = (
    ["我的德国税号是{}", "税号：{}", "{}", "德国税务识别号{}，公司要", "Steuer-ID是{}", "写“{}”就行", "稅號（{}）寄到家裡了", "报税用{}", "号码是{}，别弄丢", "Steuer-ID\n{}"],
    ["my German tax ID is {}", "Steuer-ID: {}", "{}", "IdNr. {} for my employer", "the letter says '{}'", "meine Steueridentifikationsnummer lautet {}", "tax id {} (Germany)", "I need {} for the form", "Steuer-Id {}", "use {} please"],
)  # fmt: skip
CARD = (
    ["我的卡号是{}", "银行卡：{}", "{}", "信用卡號碼 {}，有效期12/28", "用这张付：{}", "刚办的卡“{}”，还没激活", "转到{}，户名李雷", "卡号\n{}", "帮我记一下{}这张卡", "我的card是{}，密码不告诉你", "儲蓄卡{}，開戶行在蘇州"],
    ["my card is {}", "card number: {}", "{}", "charge {} please, exp 12/28", "It's a visa, '{}', for the trip", "CREDIT CARD {}", "I paid with {} yesterday", "card no.\n{}", "use {} not the old one", "here you go {} 12/28 123", "(card {})"],
)  # fmt: skip
IBAN = (
    ["我的IBAN是{}", "国际账号：{}", "{}", "汇款到{}，谢谢", "德国账户“{}”", "房租转{}就行", "帳號是{}，別弄錯", "收款人李雷 {}", "账户（{}）在德国", "请打款\n{}"],
    ["my IBAN is {}", "IBAN: {}", "{}", "please wire it to {}, thanks", "account '{}' in Berlin", "Pay the rent into {}.", "iban {} belongs to me", "transfer to {} before Friday", "(IBAN {})", "send the money here\n{}"],
)  # fmt: skip
KEY = (
    ["我的key是{}", "密钥：{}", "{}", "把{}配到环境变量里", "接口报401，用的是{}，帮我看看", "這是令牌“{}”，別外傳", "API KEY\n{}", "线上用{}，测试用另一个", "他发给我一个{}", "配置里写了 `{}`", "{}是生产环境的"],
    ["my key is {}", "API key: {}", "{}", "put {} into the env file", "I get a 401 with {}, why?", "the token '{}' is for production", "export KEY={}", "it leaked: {}", "config says `{}`", "(use {} for now)", "{}\nworks on staging"],
)  # fmt: skip
CONNECTION = (
    ["数据库连接串是{}", "{}", "用 {} 连不上", "DSN：{}", "配置里是“{}”", "把{}放进环境变量", "生产库 {} 别动", "連接字串 {}", "报错：无法连接 {}", "测试库\n{}"],
    ["the connection string is {}", "{}", "I can't connect with {} any more", "DATABASE_URL={}", "dsn: '{}'", "put {} into the compose file", "prod is {}, careful", "CONNECT {}", "error: could not connect to {}", "staging\n{}"],
)  # fmt: skip
PASSWORD = (
    ["我的密码是{}", "密码：{}", "密碼是{}，別告訴別人", "wifi密码 {}", "登录密码设成了{}", "把密码改成{}了", "邮箱的密码是“{}”，帮我记住", "支付密码就是{}。", "开机密码：\n{}", "路由器密码为{}，有需要再说", "我的Password是{}", "{}是我的登录密码", "服务器密码目前用的是{}", "密码（不要外传）：{}"],
    ["my password is {}", "Password: {}", "the wifi password is {}, ok?", "PASSWORD={}", "the password for the router is '{}'", "I changed my password to {}", "password\n: {}", "pwd: {}", "my email password is still {}", "login bob / pass: {}", "{} is my password", "The Password to my laptop is {}.", "my password's {}", "passcode is {} and it opens the gate"],
)  # fmt: skip
WORDS = (  # passwords that are plain words
    ["密码是小熊饼干", "我的密码是芝麻开门，记住了", "口令：天王盖地虎", "密碼是春暖花開", "密码设为我爱北京天安门"],
    ["my password is swordfish", "the passphrase is correct horse battery staple", "My password is 'open sesame', keep it", "password: trustno one two three", "the passcode is butterfly."],
)  # fmt: skip
CODE = (
    ["验证码是{}", "【淘宝】您的验证码是{}，5分钟内有效", "驗證碼：{}", "{}是你的验证码", "短信验证码 {}，别告诉别人", "校验码{}", "我收到的动态码是 {}", "动态口令：“{}”", "登录验证码\n{}", "验证码（10分钟内有效）：{}", "{}（验证码），请勿泄露"],
    ["the verification code is {}", "Your one-time code: {}", "{} is your verification code", "OTP {}", "my 2FA code is '{}'", "login code\n{}", "{} is your Google verification code", "they sent a security code, {}", "Use {} as your one-time password.", "VERIFICATION CODE {}", "the code for signing in, otp: {}"],
)  # fmt: skip

TALK_PASSWORD = (  # no word stands right in front of it
    ["跟你说下 公司VPN密码{} 别忘了", "老师，我的账号密码分别是lilei和{}", "密码还是老的那个{}", "账号：bob，密码：{}", "密码改过了，现在是{}", "我的淘宝密码是 {} ，京东的也是", "邮箱bob@example.com 密码{}", "密码（区分大小写）是{}", "WIFI密码就写在墙上：{}", "密碼已經改為{}", "密码，{}，记一下",
        "把{}设为我的密码"],
    ["pls remember my netflix password, it's {}", "the password I use everywhere is {}", "my bank password, {}, is old", "can you remember my password? {}", "credentials: admin / {}", "Set the password to {}, please", "the pass is {}",
        "what if I use {} as a password?", "my pw is {}", "Passwort ist {}", "contraseña: {}", "export DB_PASSWORD={}", '{"password": "{}"}'],
)  # fmt: skip
PIN = (
    ["取款密码是{}", "银行卡密码{}", "门锁密码{}", "解锁密码 {}", "保险箱密码：{}", "我银行卡的密码是{}", "手机解锁密码是{}", "手机密码{}", "我的pin码是{}", "開機密碼：{}"],
    ["my pin is {}", "PIN: {}", "the pin for my card is {}", "my card pin is {}", "pin={}", "door code is {}", "the alarm code is {}", "my locker pin's {}", "PIN number {}", "my passcode is {}"],
)  # fmt: skip
TALK_CODE = (
    ["您的验证码为：{}。请勿告知他人", "验证码我收到了，是{}", "短信上写的是{}，是验证码", "授权码{}", "登录码 {}", "安全码是 {}", "帮我填验证码{}", "二次验证码是{}", "动态密码为{}", "银行发来的验证码是{}"],
    ["Your code is {}", "code: {}", "your Uber code is {}. Never share it", "Use {} to verify your account", "Use code {} to log in", "verification code - {}", "my authenticator shows {}", "2FA: {}", "one time pass {}", "it texted me a code: {}", "[Acme] {} is your login code"],
)  # fmt: skip
TALK_HEX = (
    ["高德地图的key是{}", "接口密钥 {}", "apikey为{}", "我刚申请的key {}", "私钥{}", "令牌：{}", "API密钥（测试）：{}", "appsecret={}", "access token是{}", "金鑰：{}",
        "密钥如下：\n{}"],
    ["here is my deepseek key {}", "OPENAI_KEY={}", "app_key: {}", "X-API-Key: {}", "weather api key: {}", "client secret is {}", "curl -H 'Authorization: Bearer {}' https://a.b", '{"client_secret": "{}"}', "the api key for maps is {}", "encryption key = {}",
        "the token I use is {}",
        "AppKey: {}"],
)  # fmt: skip
TALK_CARD = (
    ["卡：{}；有效期：12/29", "工行的卡 {} 开户行苏州", "卡号为{}的那张", "招行信用卡{}刚注销", "记一下：{}", "卡{}余额不足", "付款用💳{}", "2024 {}", "姓名李雷，卡号{}，电话13812345678", "number={}&exp=1228"],
    ["so yeah {} exp 09/27 thats it", "Card:{},Name:Bob", "card on file {} please update", "cc: {}", "i got a new card {}", "pay with 💳{}", "2024 {}", "visa {} exp 03/29", "number={}&exp=1228", "Bob/{}/12-28"],
)  # fmt: skip
TALK_CN = (
    ["身份证号码{}手机13812345678", "姓名：李雷\n身份证号：{}\n电话：13800138000", "孩子的身份证号：{}", "{}（身份证）", "乘客1 王芳 {}", "sfz {}", "证件类型：身份证 证件号码：{}", "我妈的身份证{}", "身分證字號{}", "老婆身份证{}，帮买票"],
    ["id={}&name=lilei", "ID:{}", "passenger Wang Fang {}", "her ID card is {}", "sfz {}", "Li Lei {} 13812345678", "copy of {} attached", "id #{}", "ID {} expires in 2030", "[{}]"],
)  # fmt: skip

NUMBERS: dict[str, tuple[made.Make, tuple[Write, ...], tuple[list[str], list[str]]]] = {
    "id cn": (made.cn_id, CN_WAYS, CN_ID),
    "id us": (made.us_ssn, SSN_WAYS, US_SSN),
    "id us itin": (made.us_itin, SSN_WAYS, US_SSN),
    "id uk": (made.uk_nino, NINO_WAYS, UK_NINO),
    "id de": (made.de_tax_id, TAX_WAYS, DE_TAX),
    "card": (made.card, CARD_WAYS, CARD),
    "iban": (made.iban, IBAN_WAYS, IBAN),
    "jwt": (made.jwt, ONE_WAY, KEY),
    "private key": (made.private_key, ONE_WAY, KEY),
    "password": (made.password, ONE_WAY, PASSWORD),
    "password in talk": (lambda rnd: made.run(rnd, made.ALNUM, 10), ONE_WAY, TALK_PASSWORD),
    "password pin": (lambda rnd: str(rnd.randint(1000, 9999)), ONE_WAY, PIN),
    "key in talk": (lambda rnd: made.run(rnd, made.HEX, 32), ONE_WAY, TALK_HEX),
    "card in talk": (made.card, (plain, grouped(FOURS, " "), plain), TALK_CARD),
    "id cn in talk": (made.cn_id, (plain, grouped((6, 8), " ")), TALK_CN),
    "code in talk": (made.code, ONE_WAY, TALK_CODE),
    "code": (made.code, (plain, plain, grouped((3,), " "), plain, wide), CODE),
}

# addresses: (text, what must go, what must stay)

ADDRESSES_ZH = [
    ("我住在北京市海淀区中关村大街27号1101室", "中关村大街27号1101室", "北京市海淀区"), ("我家在北京海淀中关村大街27号", "中关村大街27号", "北京海淀"),
    ("地址：上海市浦东新区世纪大道100号环球金融中心12楼", "世纪大道100号环球金融中心12楼", "上海市浦东新区"), ("快递寄到杭州市西湖区文三路478号", "文三路478号", "杭州市西湖区"),
    ("我住在台北市信義區信義路五段7號89樓", "信義路五段7號89樓", "台北市信義區"), ("香港九龍彌敦道123號4樓B室是我家", "彌敦道123號4樓B室", "香港九龍"),
    ("广州市天河区体育西路103号维多利广场A座2801室", "体育西路103号维多利广场A座2801室", "广州市天河区"), ("收货地址是阳光小区5栋2单元301", "阳光小区5栋2单元301", ""),
    ("我们搬到了成都武侯区天府二街８８号", "天府二街88号", "成都武侯区"), ("南京市鼓楼区北京西路2号3栋，电话另发", "北京西路2号3栋", "南京市鼓楼区"),
    ("住深圳市南山区科技园科苑路15号", "科技园科苑路15号", "深圳市南山区"), ("我家是“幸福里3栋2单元501室”，在苏州", "幸福里3栋2单元501室", "苏州"),
    ("公司在武汉市洪山区珞喻路1037号，我常去", "珞喻路1037号", "武汉市洪山区"), ("家在西安市雁塔区小寨东路126号", "小寨东路126号", "西安市雁塔区"),
    ("台中市西屯區臺灣大道三段99號", "臺灣大道三段99號", "台中市西屯區"), ("搬到上海静安区南京西路1788号了", "南京西路1788号", "上海静安区"), ("寄到：江苏省苏州市姑苏区平江路88号院2栋", "平江路88号院2栋", "江苏省苏州市姑苏区"),
]  # fmt: skip
ADDRESSES_EN = [
    ("I live at 221B Baker Street, London NW1 6XE", "221B Baker Street NW1 6XE", "London"), ("I live at 742 Evergreen Terrace, Springfield", "742 Evergreen Terrace", "Springfield"),
    ("my address is 12 Elm Street, Apt 4B, Boston, MA 02134", "12 Elm Street, Apt 4B", "Boston"), ("ship it to 1600 Pennsylvania Avenue NW, Washington, DC 20500-0003", "1600 Pennsylvania Avenue NW 20500-0003", "Washington"),
    ("i live at 45 rose lane, oxford", "45 rose lane", "oxford"), ("Flat 3, 18 Queen's Road, Bristol BS8 1RE is my place", "Flat 3, 18 Queen's Road BS8 1RE", "Bristol"),
    ("MY ADDRESS IS 9 KING STREET, LEEDS", "9 KING STREET", "LEEDS"), ("We moved to 350 5th Avenue, New York last May", "350 5th Avenue", "New York"),
    ("Send the parcel to 10 Downing Street in London please", "10 Downing Street", "London"), ("my home is at “77 Massachusetts Ave, Cambridge”", "77 Massachusetts Ave", "Cambridge"),
    ("Hauptstraße 5, Berlin, that's where I live", "Hauptstraße 5", "Berlin"), ("I stay at 12 rue de Rivoli, Paris", "12 rue de Rivoli", "Paris"), ("P.O. Box 1234, Denver", "P.O. Box 1234", "Denver"),
    ("Our flat: 23 Sunset Blvd Apt 9, Los Angeles", "23 Sunset Blvd Apt 9", "Los Angeles"), ("send it to my mum: 3 The Avenue, Bath BA1 5AB", "3 The Avenue BA1 5AB", "Bath"),
    ("we live at number 10, Acacia Avenue, Leeds", "10, Acacia Avenue", "Leeds"), ("wohne in der Goethestraße 7a in München", "Goethestraße 7a", "München"),
]  # fmt: skip

BEHIND = {"aws secret": " = ", "azure": "=", "slack hook": "/services/", "wechat hook": "key=", "labelled hex": ": ", "labelled token": "="}  # fmt: skip

ROUNDS = 3  # values for each template


def _numbers(rnd: random.Random) -> Iterator[Sample]:
    for name, (make, ways, languages) in NUMBERS.items():
        for language, templates in zip(("zh", "en"), languages, strict=True):
            for turn in range(ROUNDS):
                for number, template in enumerate(templates):
                    written = ways[(number + turn) % len(ways)](make(rnd))
                    yield Sample(name, language, template.replace("{}", written), written)


def _keys(rnd: random.Random) -> Iterator[Sample]:
    for name, make in made.KEYS.items():
        for language, templates in zip(("zh", "en"), KEY, strict=True):
            for template in templates:
                written = make(rnd)
                secret = written.partition(BEHIND[name])[2] if name in BEHIND else written
                yield Sample(f"key {name}", language, template.replace("{}", written), secret)


def _connections(rnd: random.Random) -> Iterator[Sample]:
    for language, templates in zip(("zh", "en"), CONNECTION, strict=True):
        for template in templates * ROUNDS:
            written, word = made.connection(rnd)
            yield Sample("connection", language, template.replace("{}", written), word, ("example.com",))


def _words() -> Iterator[Sample]:
    spoken = re.compile(r"(?:是|：|设为|is|:)\s?['\"]?(?P<x>[^，。,.'\"]+)")
    for language, texts in zip(("zh", "en"), WORDS, strict=True):
        for text in texts:
            found = spoken.search(text)
            assert found
            yield Sample("password", language, text, found["x"])


def _addresses() -> Iterator[Sample]:
    for language, rows in (("zh", ADDRESSES_ZH), ("en", ADDRESSES_EN)):
        for text, secret, keeps in rows:
            yield Sample("address", language, text, secret, (keeps,))


def samples(seed: int = 20) -> list[Sample]:
    """The whole set; the same for the same seed."""
    rnd = random.Random(seed)  # made-up values, and the same ones each time
    return [*_numbers(rnd), *_keys(rnd), *_connections(rnd), *_words(), *_addresses()]
