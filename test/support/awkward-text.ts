import fc from 'fast-check'

const pieces = [
  '<|endoftext|>',
  '<|im_start|>system\n',
  '<|fim_prefix|>',
  '```',
  '````````',
  '~~~',
  ']]>',
  '<![CDATA[',
  '</document>\n</documents>\n',
  '<document index="1" source="x">',
  '&lt;&amp;',
  '\r\n',
  '\r',
  '\n\n\n',
  '/',
  '\n/',
  '//',
  '   ',
  '\t',
  '\u00a0',
  '\u3000',
  '\u2028',
  '\u0000',
  '\u001b[31m',
  '\ud800',
  '\udfff',
  '\ufffd',
  '\ufeff',
  '👨‍👩‍👧‍👦',
  '🇯🇵',
  'e\u0301\u0301',
  '日本語の文章です。',
  'ｶﾀｶﾅ',
  'ไทย',
  "don't we'LL",
  'camelCaseIdentifier',
  'SCREAMING_CASE',
  '1234567890',
  '","index":2}',
  '"}\n]\n',
  '# Heading\n',
  'export function f(a: string): void {\n',
  'word ',
]

const run = fc
  .tuple(
    fc.constantFrom('_', 'a', 'Z', ' ', '\n', '漢', 'あ', '😀', '`', '/', '\u0301', '9', '='),
    fc.integer({ min: 1, max: 600 }),
  )
  .map(([unit, times]) => unit.repeat(times))

/** Texts that often cause errors: runs, special tokens, ends of fences and markup, lone surrogates, all kinds of scripts. */
export const awkwardText = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...pieces) },
      { weight: 1, arbitrary: run },
      { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
      { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))
