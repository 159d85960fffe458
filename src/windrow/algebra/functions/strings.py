"""Functions of text. Positions count characters from 1; a negative position counts from the end."""

from __future__ import annotations

from windrow.algebra.expressions import Call, Expression
from windrow.algebra.functions import registry as fn
from windrow.algebra.types import BINARY, STRING, Kind


def _concat(name: str, args: tuple[Expression, ...]) -> Expression:
    if all(arg.type.kind is Kind.BINARY for arg in args):
        return Call(name, args, BINARY)
    return fn.returns(STRING, fn.PRINTABLE)(name, args)


FUNCTIONS = fn.family(
    r"""
|| (x, y); binds 70; sql {0} || {1}
    one text after the other | 'a' || 1 -> 'a1'
concat (x, …)
    all texts in a row; NULL if one is | concat('a', 'b', 'c') -> 'abc'
concat_ws (text, [printable], …) STRING; sees NULL
    all texts but NULLs in a row, the first between them | concat_ws('-', 'a', NULL, 'b') -> 'a-b'
length, char_length, character_length, len (text or bytes) INT
    how many characters, or bytes of a BINARY | length('über') -> 4
octet_length (text or bytes) INT
    how many bytes | octet_length('über') -> 5
upper, ucase (text) STRING
    in upper case | upper('straße') -> 'STRASSE'
lower, lcase (text) STRING
    in lower case | lower('ABC') -> 'abc'
initcap (text) STRING
    each word with one capital | initcap('iBIS FLY') -> 'Ibis Fly'
trim, btrim (text, [text]) STRING; sql TRIM([{1} FROM ]{0})
    without blanks, or the characters y, at both ends; `btrim(x, y)` has them last | TRIM('k' FROM 'kak') ->
    'a'
ltrim (text, [text]) STRING; sql ltrim([{1}, ]{0})
    without blanks, or the characters y, at the start; also `TRIM(LEADING y FROM x)` | ltrim('k', 'kak') ->
    'ak'
rtrim (text, [text]) STRING; sql rtrim([{1}, ]{0})
    without blanks, or the characters y, at the end; also `TRIM(TRAILING y FROM x)` | rtrim('k', 'kak') ->
    'ka'
substring, substr, mid (text, int, [int]) STRING
    from a position, at most so many characters | substring('Spark SQL', -3, 2) -> 'SQ'
left (text, int) STRING
    the first characters | left('abc', 2) -> 'ab'
right (text, int) STRING
    the last characters | right('abc', 2) -> 'bc'
replace (text, text, [text]) STRING
    every second argument replaced by the third, or removed | replace('ABCabc', 'abc', 'DEF') -> 'ABCDEF'
locate, position, charindex (text, text, [int]) INT; sees NULL
    where the first stands in the second, from a position on; 0 if nowhere | locate('b', 'abcb', 3) -> 4
instr (x, y)
    where the second stands in the first; 0 if nowhere | instr('abc', 'c') -> 3
lpad (text, int, [text]) STRING; fails
    filled up on the left, or cut, to a length | lpad('hi', 5, 'xy') -> 'xyxhi'
rpad (text, int, [text]) STRING; fails
    filled up on the right, or cut, to a length | rpad('hi', 5, 'xy') -> 'hixyx'
repeat (text, int) STRING; fails
    so many times in a row | repeat('ab', 2) -> 'abab'
reverse (text) STRING
    backwards | reverse('abc') -> 'cba'
split_part (text, text, int) STRING; fails
    the n-th part between delimiters, from the end if negative; empty if there is none |
    split_part('11.12.13', '.', 3) -> '13'
startswith (text, text) BOOLEAN
    whether it begins so | startswith('abc', 'ab') -> TRUE
endswith (text, text) BOOLEAN
    whether it ends so | endswith('abc', 'bc') -> TRUE
contains (text, text) BOOLEAN
    whether it holds that | contains('abc', 'b') -> TRUE
translate (text, text, text) STRING
    characters of the second replaced by those of the third, or removed | translate('AaBbCc', 'abc', '12') ->
    'A1B2C'
ascii (text) INT
    the code of the first character; 0 of no text | ascii('a') -> 97
chr, char (bigint) STRING
    the character of a code below 256 | chr(65) -> 'A'
space (int) STRING; fails
    so many blanks | space(2) -> '  '
md5 (bytes) STRING
    the MD5 sum | left(md5('a'), 8) -> '0cc175b9'
sha1, sha (bytes) STRING
    the SHA-1 sum | left(sha1('a'), 8) -> '86f7e437'
sha2 (bytes, int) STRING
    the SHA-2 sum of 224, 256, 384 or 512 bits | left(sha2('a', 256), 8) -> 'ca978112'
crc32 (bytes) BIGINT
    the CRC-32 sum | crc32('a') -> 3904355907
hex (bytes) STRING
    the bytes as hexadecimal digits | hex('abc') -> '616263'
""",
    {"||": _concat, "concat": _concat, "instr": lambda _, args: fn.call("locate", args[::-1])},
)
