"""Made-up secrets with right checksums. Nothing here ever belonged to anybody: all of it comes from a seeded generator."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

from stdnum import luhn
from stdnum.cn import ric
from stdnum.iso7064 import mod_11_10, mod_97_10

from hermes_memory.adapters.detectors.checks import iban_length

DIGITS, CAPITALS, LETTERS = string.digits, string.ascii_uppercase, string.ascii_letters
ALNUM, HEX = LETTERS + DIGITS, "0123456789abcdef"
URL = ALNUM + "_-"

Make = Callable[[random.Random], str]


def run(rnd: random.Random, alphabet: str, length: int) -> str:
    """So many characters; of letters and digits at least one of each, as real keys have in practice."""
    kinds = [kind for kind in (DIGITS, LETTERS) if set(kind) & set(alphabet)]
    while True:
        made = "".join(rnd.choices(alphabet, k=length))
        if length < 6 or all(set(kind) & set(made) for kind in kinds):
            return made


# ids


def cn_id(rnd: random.Random) -> str:
    district = rnd.choice(["110105", "310115", "440305", "330106", "510107", "420111", "610113", "370202"])
    born = f"{rnd.randint(1940, 2012)}{rnd.randint(1, 12):02}{rnd.randint(1, 28):02}"
    number = f"{district}{born}{rnd.randint(1, 999):03}"
    return number + ric.calc_check_digit(number + "0")


def us_ssn(rnd: random.Random) -> str:
    return f"{rnd.randint(100, 665)}-{rnd.randint(10, 99)}-{rnd.randint(1000, 9999)}"


def us_itin(rnd: random.Random) -> str:
    return f"9{rnd.randint(10, 99)}-{rnd.randint(70, 88)}-{rnd.randint(1000, 9999)}"


def uk_nino(rnd: random.Random) -> str:
    first, second = rnd.choice("ABCEHJLMPRSTWXY"), rnd.choice("ABCEHJLMPRSTWXYZ")
    return f"{first}{second}{run(rnd, DIGITS, 6)}{rnd.choice('ABCD')}"


def de_tax_id(rnd: random.Random, first: str = "23456789") -> str:
    head = rnd.choice(first)
    others = rnd.sample([digit for digit in DIGITS if digit != head], 8)
    digits = [*others, rnd.choice(others)]
    rnd.shuffle(digits)
    number = head + "".join(digits)
    return number + mod_11_10.calc_check_digit(number)


# cards and accounts

BRANDS = {
    "visa": ("4", 16), "mastercard": ("53", 16), "new mastercard": ("2345", 16), "amex": ("37", 15), "unionpay": ("6222", 19),
    "unionpay 16": ("6258", 16), "discover": ("6011", 16), "jcb": ("3530", 16), "diners": ("36", 14), "old debit": ("95588", 19),
}  # fmt: skip


def card(rnd: random.Random, brand: str | None = None) -> str:
    first, length = BRANDS[brand or rnd.choice(list(BRANDS))]
    number = first + run(rnd, DIGITS, length - len(first) - 1)
    return number + luhn.calc_check_digit(number)


IBANS = {"DE": "18n", "GB": "4a14n", "FR": "23n", "NL": "4a10n", "CH": "17n", "AT": "16n", "SE": "20n", "IE": "4a14n", "BE": "12n", "PL": "24n"}  # fmt: skip


def iban(rnd: random.Random, country: str | None = None) -> str:
    country = country or rnd.choice(list(IBANS))
    form = IBANS[country]
    bank = run(rnd, CAPITALS, 4) if "a" in form else ""
    account = bank + run(rnd, DIGITS, int(form.removeprefix("4a").removesuffix("n")))
    made = country + mod_97_10.calc_check_digits(account + country) + account
    assert iban_length(made) == len(made)
    return made


# keys

KEYS: dict[str, Make] = {
    "aws": lambda r: "AKIA" + run(r, CAPITALS + "234567", 16),
    "aws secret": lambda r: "aws_secret_access_key = " + run(r, ALNUM + "/+", 40),
    "google": lambda r: "AIza" + run(r, URL, 35),
    "google oauth": lambda r: "ya29." + run(r, URL, 60),
    "azure": lambda r: "AccountKey=" + base64.b64encode(r.randbytes(64)).decode(),
    "alibaba": lambda r: "LTAI" + run(r, ALNUM, 20),
    "tencent": lambda r: "AKID" + run(r, ALNUM, 32),
    "digitalocean": lambda r: "dop_v1_" + run(r, HEX, 64),
    "vault": lambda r: "hvs." + run(r, URL, 24),
    "stripe": lambda r: "sk_live_" + run(r, ALNUM, 24),
    "stripe restricted": lambda r: "rk_test_" + run(r, ALNUM, 40),
    "stripe hook": lambda r: "whsec_" + run(r, ALNUM, 32),
    "square": lambda r: "sq0csp-" + run(r, URL, 43),
    "razorpay": lambda r: "rzp_live_" + run(r, ALNUM, 24),
    "shopify": lambda r: "shpat_" + run(r, HEX, 32),
    "github": lambda r: "ghp_" + run(r, ALNUM, 36),
    "github app": lambda r: "ghs_" + run(r, ALNUM, 36),
    "github fine": lambda r: "github_pat_" + run(r, ALNUM, 22) + "_" + run(r, ALNUM, 59),
    "gitlab": lambda r: "glpat-" + run(r, URL, 20),
    "bitbucket": lambda r: "ATBB" + run(r, ALNUM, 32),
    "slack": lambda r: f"xoxb-{run(r, DIGITS, 12)}-{run(r, DIGITS, 13)}-{run(r, ALNUM, 24)}",
    "slack user": lambda r: f"xoxp-{run(r, DIGITS, 11)}-{run(r, DIGITS, 11)}-{run(r, HEX, 32)}",
    "slack hook": lambda r: (
        f"https://hooks.slack.com/services/T{run(r, CAPITALS, 8)}/B{run(r, CAPITALS, 8)}/{run(r, ALNUM, 24)}"
    ),
    "telegram": lambda r: f"{run(r, '123456789', 9)}:AA{run(r, URL, 33)}",
    "discord": lambda r: f"M{run(r, ALNUM, 23)}.{run(r, ALNUM, 6)}.{run(r, URL, 27)}",
    "wechat hook": lambda r: "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=" + run(r, HEX, 32),
    "twilio": lambda r: "SK" + run(r, HEX, 32),
    "sendgrid": lambda r: f"SG.{run(r, URL, 22)}.{run(r, URL, 43)}",
    "mailgun": lambda r: "key-" + run(r, HEX, 32),
    "openai": lambda r: "sk-" + run(r, ALNUM, 48),
    "openai project": lambda r: "sk-proj-" + run(r, URL, 60),
    "anthropic": lambda r: "sk-ant-api03-" + run(r, URL, 93),
    "zhipu": lambda r: f"{run(r, HEX, 32)}.{run(r, ALNUM, 16)}",
    "hugging face": lambda r: "hf_" + run(r, ALNUM, 34),
    "groq": lambda r: "gsk_" + run(r, ALNUM, 52),
    "xai": lambda r: "xai-" + run(r, ALNUM, 80),
    "perplexity": lambda r: "pplx-" + run(r, ALNUM, 48),
    "replicate": lambda r: "r8_" + run(r, ALNUM, 37),
    "npm": lambda r: "npm_" + run(r, ALNUM, 36),
    "pypi": lambda r: "pypi-AgEIcHlwaS5vcmc" + run(r, URL, 80),
    "notion": lambda r: "ntn_" + run(r, ALNUM, 46),
    "labelled hex": lambda r: "api_key: " + run(r, HEX, 32),
    "labelled token": lambda r: "token=" + run(r, URL, 40),
}


def jwt(rnd: random.Random) -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    header = part('{"alg":"HS256","typ":"JWT"}')
    claims = part(f'{{"sub":"{run(rnd, DIGITS, 10)}","iat":{rnd.randint(10**9, 2 * 10**9)}}}')
    return f"{header}.{claims}.{run(rnd, URL, 43)}"


def private_key(rnd: random.Random) -> str:
    name = rnd.choice(
        ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]
    )
    lines = [run(rnd, ALNUM + "+/", 64) for _ in range(4)] + [run(rnd, ALNUM, 20) + "=="]
    return f"-----BEGIN {name}-----\n" + "\n".join(lines) + f"\n-----END {name}-----"


def connection(rnd: random.Random) -> tuple[str, str]:
    """An address with a password in it, and the password."""
    scheme = rnd.choice(
        ["postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "redis", "amqp", "https", "ftp"]
    )
    word = run(rnd, ALNUM + "!$%*-_.", 12)
    return (
        f"{scheme}://{rnd.choice(['app', 'root', 'bob', 'svc_user'])}:{word}@db{rnd.randint(1, 9)}.example.com:5432/main",
        word,
    )


def password(rnd: random.Random) -> str:
    word = rnd.choice(["tiger", "Blue", "xiaoming", "Sunset", "mochi", "QWER", "lovely", "Panda"])
    return rnd.choice([
        f"{word}{rnd.randint(10, 9999)}", f"{word}@{rnd.randint(10, 9999)}", f"{rnd.randint(10, 99)}{word}!{rnd.randint(1, 9)}x",
        run(rnd, ALNUM, 10), run(rnd, ALNUM + "#$%&*", 14), f"{word}_{run(rnd, DIGITS, 4)}", run(rnd, DIGITS, 8),
    ])  # fmt: skip


def code(rnd: random.Random) -> str:
    return str(rnd.randint(100_000, 999_999))
