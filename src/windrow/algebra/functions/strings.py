"""Functions of text. Positions count characters from 1; a negative position counts from the end."""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Expression
from windrow.algebra.functions import registry as fn
from windrow.algebra.types import BIGINT, BINARY, BOOLEAN, INT, STRING, Kind

_text = partial(fn.plain, result=STRING)
_number = partial(fn.plain, result=INT)
_test = partial(fn.plain, result=BOOLEAN)


def _measured(arg: Expression) -> Expression | None:
    return arg if arg.type == BINARY else fn.TEXT.accept(arg)


TEXT_OR_BYTES = fn.Parameter("text or bytes", _measured)


def _instr(_: str, args: tuple[Expression, ...]) -> Expression:
    return fn.call("locate", (args[1], args[0]))


def _concat(name: str, args: tuple[Expression, ...]) -> Expression:
    if all(arg.type.kind is Kind.BINARY for arg in args):
        return Call(name, args, BINARY)
    return fn.returns(STRING, fn.PRINTABLE)(name, args)


FUNCTIONS = (
    fn.Function(
        "||", (2, 2), _concat, "one text after the other", "'a' || 1 -> 'a1'", sql="{0} || {1}", precedence=70
    ),
    fn.Function(
        "concat", (1, None), _concat, "all texts in a row; NULL if one is", "concat('a', 'b', 'c') -> 'abc'"
    ),
    fn.Function(
        "concat_ws",
        (1, None),
        fn.returns(STRING, fn.TEXT, fn.PRINTABLE),
        "all texts but NULLs in a row, the first between them",
        "concat_ws('-', 'a', NULL, 'b') -> 'a-b'",
        null_propagating=False,
    ),
    _number(
        "length",
        params=(TEXT_OR_BYTES,),
        description="how many characters, or bytes of a BINARY",
        example="length('über') -> 4",
        aliases=("char_length", "character_length", "len"),
    ),
    _number(
        "octet_length",
        params=(TEXT_OR_BYTES,),
        description="how many bytes",
        example="octet_length('über') -> 5",
    ),
    _text(
        "upper",
        params=(fn.TEXT,),
        description="in upper case",
        example="upper('straße') -> 'STRASSE'",
        aliases=("ucase",),
    ),
    _text(
        "lower",
        params=(fn.TEXT,),
        description="in lower case",
        example="lower('ABC') -> 'abc'",
        aliases=("lcase",),
    ),
    _text(
        "initcap",
        params=(fn.TEXT,),
        description="each word with one capital",
        example="initcap('iBIS FLY') -> 'Ibis Fly'",
    ),
    _text(
        "trim",
        params=(fn.TEXT, fn.TEXT),
        optional=1,
        description="without blanks, or the characters y, at both ends; `btrim(x, y)` has them last",
        example="TRIM('k' FROM 'kak') -> 'a'",
        sql="TRIM([{1} FROM ]{0})",
        aliases=("btrim",),
    ),
    _text(
        "ltrim",
        params=(fn.TEXT, fn.TEXT),
        optional=1,
        description="without blanks, or the characters y, at the start; also `TRIM(LEADING y FROM x)`",
        example="ltrim('k', 'kak') -> 'ak'",
        sql="ltrim([{1}, ]{0})",
    ),
    _text(
        "rtrim",
        params=(fn.TEXT, fn.TEXT),
        optional=1,
        description="without blanks, or the characters y, at the end; also `TRIM(TRAILING y FROM x)`",
        example="rtrim('k', 'kak') -> 'ka'",
        sql="rtrim([{1}, ]{0})",
    ),
    _text(
        "substring",
        params=(fn.TEXT, fn.SHORT, fn.SHORT),
        optional=1,
        description="from a position, at most so many characters",
        example="substring('Spark SQL', -3, 2) -> 'SQ'",
        aliases=("substr", "mid"),
    ),
    _text(
        "left",
        params=(fn.TEXT, fn.SHORT),
        description="the first characters",
        example="left('abc', 2) -> 'ab'",
    ),
    _text(
        "right",
        params=(fn.TEXT, fn.SHORT),
        description="the last characters",
        example="right('abc', 2) -> 'bc'",
    ),
    _text(
        "replace",
        params=(fn.TEXT, fn.TEXT, fn.TEXT),
        optional=1,
        description="every second argument replaced by the third, or removed",
        example="replace('ABCabc', 'abc', 'DEF') -> 'ABCDEF'",
    ),
    _number(
        "locate",
        params=(fn.TEXT, fn.TEXT, fn.SHORT),
        optional=1,
        description="where the first stands in the second, from a position on; 0 if nowhere",
        example="locate('b', 'abcb', 3) -> 4",
        aliases=("position", "charindex"),
        null_propagating=False,
    ),
    fn.Function(
        "instr",
        (2, 2),
        _instr,
        "where the second stands in the first; 0 if nowhere",
        "instr('abc', 'c') -> 3",
    ),
    _text(
        "lpad",
        params=(fn.TEXT, fn.SHORT, fn.TEXT),
        optional=1,
        description="filled up on the left, or cut, to a length",
        example="lpad('hi', 5, 'xy') -> 'xyxhi'",
        can_fail=True,
    ),
    _text(
        "rpad",
        params=(fn.TEXT, fn.SHORT, fn.TEXT),
        optional=1,
        description="filled up on the right, or cut, to a length",
        example="rpad('hi', 5, 'xy') -> 'hixyx'",
        can_fail=True,
    ),
    _text(
        "repeat",
        params=(fn.TEXT, fn.SHORT),
        description="so many times in a row",
        example="repeat('ab', 2) -> 'abab'",
        can_fail=True,
    ),
    _text("reverse", params=(fn.TEXT,), description="backwards", example="reverse('abc') -> 'cba'"),
    _text(
        "split_part",
        params=(fn.TEXT, fn.TEXT, fn.SHORT),
        description="the n-th part between delimiters, from the end if negative; empty if there is none",
        example="split_part('11.12.13', '.', 3) -> '13'",
        can_fail=True,
    ),
    _test(
        "startswith",
        params=(fn.TEXT, fn.TEXT),
        description="whether it begins so",
        example="startswith('abc', 'ab') -> TRUE",
    ),
    _test(
        "endswith",
        params=(fn.TEXT, fn.TEXT),
        description="whether it ends so",
        example="endswith('abc', 'bc') -> TRUE",
    ),
    _test(
        "contains",
        params=(fn.TEXT, fn.TEXT),
        description="whether it holds that",
        example="contains('abc', 'b') -> TRUE",
    ),
    _text(
        "translate",
        params=(fn.TEXT, fn.TEXT, fn.TEXT),
        description="characters of the second replaced by those of the third, or removed",
        example="translate('AaBbCc', 'abc', '12') -> 'A1B2C'",
    ),
    _number(
        "ascii",
        params=(fn.TEXT,),
        description="the code of the first character; 0 of no text",
        example="ascii('a') -> 97",
    ),
    _text(
        "chr",
        params=(fn.LONG,),
        description="the character of a code below 256",
        example="chr(65) -> 'A'",
        aliases=("char",),
    ),
    _text(
        "space", params=(fn.SHORT,), description="so many blanks", example="space(2) -> '  '", can_fail=True
    ),
    _text("md5", params=(fn.BYTES,), description="the MD5 sum", example="left(md5('a'), 8) -> '0cc175b9'"),
    _text(
        "sha1",
        params=(fn.BYTES,),
        description="the SHA-1 sum",
        example="left(sha1('a'), 8) -> '86f7e437'",
        aliases=("sha",),
    ),
    _text(
        "sha2",
        params=(fn.BYTES, fn.SHORT),
        description="the SHA-2 sum of 224, 256, 384 or 512 bits",
        example="left(sha2('a', 256), 8) -> 'ca978112'",
    ),
    fn.plain("crc32", BIGINT, (fn.BYTES,), "the CRC-32 sum", "crc32('a') -> 3904355907"),
    _text(
        "hex",
        params=(fn.BYTES,),
        description="the bytes as hexadecimal digits",
        example="hex('abc') -> '616263'",
    ),
)
