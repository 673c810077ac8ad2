import type { MemoryEntry } from '../../support/memory.ts'

/**
 * Character sequences that control a terminal or hide text: requests for its state, the end of a paste, links, colours,
 * directions.
 */
export const steering = [
  '\u001b[31m',
  '\u001b[6n',
  '\u001b[c',
  '\u001b[201~',
  '\u001b]8;;http://x\u0007',
  '\u001b]52;c;eA==\u0007',
  '\u009b2J',
  '\u0007',
  '\r',
  '\n',
  '\b',
  '\u007f',
  '\u202e',
  '\u2066',
  '\u200b',
  '\u200e',
  '\ufeff',
  '\u2028',
  '\u{e0041}\u{e0042}',
]

/** Characters that must be escaped before they are shown to a person. */
export const unprintable =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u

const markup = '"><img src=x onerror=alert(1)><svg/onload=alert(1)>{{7*7}}</script>'
const icon = (src: string, mimeType = 'image/png') => ({ src, mimeType })

/** Entries with hostile metadata, as in a front matter or from a remote server. */
export const guises: Readonly<Record<string, MemoryEntry>> = {
  'bidi-\u202etxt.exe': { title: steering.join('x'), description: steering.join('y'), text: '' },
  'markup.txt': { title: markup, description: markup, mimeType: 'text/html', text: markup },
  'numbers.txt': { priority: Number.NaN, size: Number.NaN, modified: Number.NaN, text: '' },
  'numbers-too-large.txt': { priority: 1e9, size: 1e300, modified: 1e300, text: '' },
  'numbers-too-small.txt': { priority: -1, size: -1, modified: -1e300, text: '' },
  'audience.txt': { audience: ['user', 'root', '__proto__'] as never, text: '' },
  'icons.txt': {
    icons: [
      icon('javascript:alert(1)'),
      icon('file:///etc/passwd'),
      icon('http://127.0.0.1/x.png'),
      icon('data:text/html,<script>alert(1)</script>', 'text/html'),
      icon('blob:x'),
      icon('HTTPS:\njavascript:x'),
      icon('https://example.org/icon.png'),
      icon('data:image/png;base64,AA=='),
    ],
    text: '',
  },
  ...Object.fromEntries(
    [
      'text/html\r\nX-Injected: 1',
      'text/plain\u0000',
      'text/\u001b[31m',
      'text',
      '/',
      'text/plain; charset=utf-8\n',
      'text/html,application/json',
      `text/${'x'.repeat(5000)}`,
      'テキスト/plain',
      '<b>/x',
    ].map((mimeType, i) => [`type-${i}`, { mimeType, text: '' }]),
  ),
}
