"""SPEC §4.1.3: secrets and strong identifiers are found before anything is stored."""

from itertools import pairwise
from pathlib import Path

import pytest

from hermes_memory.adapters.detectors import SecretDetector, load_shapes
from hermes_memory.core.privacy import mask
from hermes_memory.errors import InvalidConfig

DETECTOR = SecretDetector()


def masked(text: str) -> str:
    return mask(text, DETECTOR.find(text))


FOUND = [
    # national ids
    ("身份证：11010519491231002X", "身份证：[id]"),
    ("我的身份證號碼是 440524188001010014", "我的身份證號碼是 [id]"),
    ("护照号 E98765432", "护照号 [id]"),
    ("A123456789是我的身分證", "[id]是我的身分證"),
    ("my SSN is 536-90-4399", "my SSN is [id]"),
    ("NI: AB123456C ok", "NI: [id] ok"),
    ("Steuer-ID 36574261809", "Steuer-ID [id]"),
    ("passport no. X1234567", "passport no. [id]"),
    ("HKID A123456(3)", "HKID [id]"),
    ("S1234567D", "[id]"),
    ("390.533.447-05", "[id]"),
    ("880320-0016", "[id]"),
    ("RCCMNL83S18D969H", "[id]"),
    ("NIE X2482300W", "NIE [id]"),
    ("295109912611193", "[id]"),
    ("2341 2341 2346", "[id]"),
    ("36 574 261 809", "[id]"),
    ("MORGA657054SM9IJ", "[id]"),
    # cards
    ("卡号5500005555555559", "卡号[card]"),
    ("5500 0055 5555 5559", "[card]"),
    ("5500-0055-5555-5559!", "[card]!"),
    ("银行卡号是6222020200112230111", "银行卡号是[card]"),
    ("Amex 378282246310005", "Amex 378282246310005".replace("378282246310005", "[card]")),
    ("cvv 123", "cvv [card]"),
    # iban
    ("IBAN: DE89 3704 0044 0532 0130 00, danke", "IBAN: [iban], danke"),
    ("pay GB82WEST12345698765432 today", "pay [iban] today"),
    # secrets
    ("key sk-proj-abcdEFGH1234567890abcd", "key [secret]"),
    ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a 是我的", "[secret] 是我的"),
    ("xoxb-123456789012-abcdefABCDEF", "[secret]"),
    ("token=9f86d081884c7d659a2feaa0c55ad015", "token=[secret]"),
    ("我的密钥是9f86d081884c7d659a2feaa0c55ad015", "我的密钥是[secret]"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "[secret]"),
    ("postgres://bob:hunter2@db.example.com/x", "postgres://bob:[secret]@db.example.com/x"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "[secret]"),
    # passwords
    ("密码是abc12345", "密码是[password]"),
    ("我的密碼：Qwerty!9", "我的密碼：[password]"),
    ("wifi密码为 88888888。", "wifi密码为 [password]。"),
    ("密码是小熊饼干", "密码是[password]"),
    ("my password is swordfish", "my password is [password]"),
    ("pwd: hunter2-x", "pwd: [password]"),
    ("The password for the router is 'open sesame'", "The password for the router is '[password]'"),
    ("my PIN is 4821", "my PIN is [password]"),
    ("username/password: bob/Kx81mQz7p", "username/password: [password]"),
    ("Server=db;Password=Kx81mQz7p;Encrypt=true", "Server=db;Password=[password]"),
    ("root:Kx81mQz7p@server", "root:[password]@server"),
    ("my password is swordfish. I live in Oslo.", "my password is [password]. I live in Oslo."),
    ("the passphrase is correct horse battery staple", "the passphrase is [password]"),
    # codes
    ("G-482910 is your Google verification code", "[code] is your Google verification code"),
    ("4111 1111 1111 1111 12/28 123", "[card] 12/28 123"),
    # addresses: city and district stay
    ("我住在杭州市西湖区文三路478号", "我住在杭州市西湖区[address]"),
    ("北京市海淀区中关村大街27号院3号楼1202室", "北京市海淀区[address]"),
    ("地址是阳光小区5栋", "地址是[address]"),
    ("I live at 742 Evergreen Terrace, Springfield", "I live at [address], Springfield"),
    ("12 Elm Street, Apt 4B, Boston", "[address], Boston"),
    ("Hauptstraße 5, Berlin", "[address], Berlin"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), FOUND)
def test_a_secret_is_masked_and_the_rest_goes_on(text: str, wanted: str) -> None:
    assert masked(text) == wanted


EVASIONS = [
    ("卡号４１１１１１１１１１１１１１１１", "卡号[card]"),
    ("4111\u200b1111\u200b1111\u200b1111", "[card]"),
    ("41\u206011 1111 1111 11\ufeff11", "[card]"),
    ("身份证１１０１０５１９４９１２３１００２Ｘ", "身份证[id]"),
    ("sk-te\u200bst-FAKE00000000000000000000", "[secret]"),
    ("٤١١١١١١١١١١١١١١١", "[card]"),
    ("ＡＫＩＡＩＯＳＦＯＤＮＮ７ＥＸＡＭＰＬＥ", "[secret]"),
    ("4111\u00a01111\u00a01111\u00a01111", "[card]"),
    ("4111–1111–1111–1111", "[card]"),
]


@pytest.mark.parametrize(("text", "wanted"), EVASIONS)
def test_wide_digits_and_invisible_characters_are_no_way_around(text: str, wanted: str) -> None:
    assert masked(text) == wanted


HARMLESS = [
    "HKID A123456(4)", "S1234567A", "390.533.447-06", "880320-0017", "RCCMNL83S18D969A", "X2482300A", "295109912611194",
    "2341 2341 2347", "A123456788", "XX00 1234 5678 9012 3456", "GB82 WEST", "9876 1234",
    "电话 13812345678", "call +1 415 555 2671", "订单号 1234567890123", "我身高178厘米，体重70公斤", "密码是什么", "我忘记密码了",
    "my password is wrong", "the password is not working", "地铁3号线", "我在中山路上班", "我养了2只猫", "今年是2026年3月2日",
    "I have 3 cats and live on Elm Street", "I ran 10 miles on the road", "version 1.2.3.4", "see https://example.com/a/b?c=1",
    "my token of appreciation", "2026-03-02 15:00", "the year 1990", "ISBN 978-3-16-148410-0", "我住在浦东新区", "我住三楼",
    "my birthday is 1990-01-02", "meet at 5 pm in the square", "密码是对的", "0000 0000 0000 0000",
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert masked(text) == text


def test_several_findings_come_in_order_and_do_not_overlap() -> None:
    text = "卡号4111111111111111，身份证11010519491231002X，密码是abc123"
    found = DETECTOR.find(text)
    assert [item.kind for item in found] == ["card", "id", "password"]
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert masked(text) == "卡号[card]，身份证[id]，密码是[password]"


def test_what_is_masked_already_stays_as_it_is() -> None:
    text = "my card is [card], 密码是 [password], key [secret], 身份证[id]"
    assert masked(text) == text


GOOD = 'kind = "id"\nlabels = ["no"]\nlink = ":"\nvalue = "@run@"\nunless = ["x", "号"]\nbefore = "a"\nnot_after = "b"\ncheck = "card"'
PARTS = '[part]\nrun = "[0-9]{4,20}"\n[card]\nvisa = { first = "4", lengths = [16] }\n'


def shapes_of(tmp_path: Path, text: str) -> object:
    file = tmp_path / "privacy.toml"
    file.write_text(text, encoding="utf-8")
    return load_shapes(file)


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    assert len(shapes_of(tmp_path, f"{PARTS}[[shape]]\n{GOOD}")) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "id"', 'kind = "x"'), ('kind = "id"', ""), ('value = "@run@"', ""), ('value = "@run@"', 'value = "@lost@"'),
        ('value = "@run@"', 'value = "("'), ('value = "@run@"', "value = 1"), ('value = "@run@"', 'value = "1"\nregex = "2"'),
        ('labels = ["no"]', 'labels = "no"'), ('labels = ["no"]', "labels = [1]"), ('labels = ["no"]', 'labels = ["no"]\nextra = 1'),
        ('unless = ["x", "号"]', 'unless = ["("]'), ('check = "card"', 'check = "none"'), ('check = "card"', 'check = "stdnum.nowhere"'),
        ('check = "card"', 'check = "stdnum.exceptions"'), ('first = "4"', 'first = "("'), ("lengths = [16]", 'sizes = "many"'), ("[[shape]]", "[["),
        ("[[shape]]", "[shape_]"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = f"{PARTS}[[shape]]\n{GOOD}"
    assert old in text
    with pytest.raises(InvalidConfig):
        shapes_of(tmp_path, text.replace(old, new, 1))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig):
        load_shapes(tmp_path / "absent.toml")
