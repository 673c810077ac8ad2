import type { Expectation } from '../harness/oracles.ts'
import type { UriCase } from './hostile-uris.ts'

type Cases = Readonly<Record<string, string | ((address: string) => string)>>

function row(id: string, expect: Expectation, cases: Cases, text?: string): readonly UriCase[] {
  return Object.entries(cases).map(([what, uri]) => ({
    id,
    what,
    expect,
    uri: typeof uri === 'function' ? uri : () => uri,
    ...(text === undefined ? {} : { text }),
  }))
}

const behind = (suffix: string) => (address: string) => `${address}/${suffix}`
const around = (before: string, after: string) => (address: string) => `${before}${address}/a.txt${after}`
const each = (names: Readonly<Record<string, string>>, make: (text: string) => (address: string) => string): Cases =>
  Object.fromEntries(Object.entries(names).map(([what, text]) => [what, make(text)]))

/** Characters that end lines, steer terminals, or are not there. */
const controls = {
  'U+0001': '\u0001',
  'U+0008': '\b',
  'U+001B': '\u001b',
  'U+001F': '\u001f',
  'U+007F': '\u007f',
  'U+0080': '\u0080',
  'U+0085': '\u0085',
  'U+009B': '\u009b',
  'U+009F': '\u009f',
  'U+2028': '\u2028',
  'U+2029': '\u2029',
}
const encoded = (text: string) => encodeURIComponent(text)

/** Section 3.2: what a URI is, and when two are one. Cases that need more than one question are in uris.test.ts. */
export const identity: readonly UriCase[] = [
  ...row('UR01', 'BAD', {
    'userinfo in a file URI': (address) => address.replace('file://', 'file://user:pw@host'),
    'userinfo without a host': (address) => address.replace('file://', 'file://user@'),
    'userinfo of git': 'git://u@repo/README',
    'a password': 'rule://user:pw@guarded/open.txt',
    'an empty user': 'rule://@guarded/open.txt',
    'an encoded @': 'rule://user%40guarded/open.txt',
  }),
  ...row('UR01', 'NF', { 'an @ in a path is a name': behind('user:pw@host') }),
  ...row('UR02', 'NF', {
    'a port': 'rule://guarded:22/open.txt',
    'an empty port': 'rule://guarded:/open.txt',
    'port 0': 'rule://guarded:0/open.txt',
    'a port that is none': 'rule://guarded:99999999/open.txt',
    'git with a port': 'git://repo:22/README',
  }),
  ...row('UR02', 'BAD', { 'a port in a file URI': (address) => address.replace('file://', 'file://:22') }),
  ...row('UR03', 'BAD', {
    'a fragment': behind('a.txt#f'),
    'an empty fragment': behind('a.txt#'),
    'a fragment before a query': behind('a.txt#f?lines=1-2'),
    'a fragment behind a query': behind('a.txt?lines=1-2#f'),
    'a fragment in the authority': 'rule://guarded#x/open.txt',
    'nothing but a fragment': '#',
    'a raw # in a name that exists': behind('hash#f'),
  }),
  ...row('UR03', 'ctl', { 'an encoded # in a name that exists': behind('hash%23f') }, 'hash\n'),
  ...row('UR04', 'BAD', {
    'a query': behind('a.txt?x=1'),
    'an empty query': behind('a.txt?'),
    'a parameter twice': behind('a.txt?lines=1-1&lines=1-1'),
    'a parameter twice, once encoded': behind('a.txt?lines=1-1&%6cines=1-1'),
    'an unknown parameter beside a known one': behind('a.txt?lines=1-1&x=1'),
    'two questions': behind('a.txt??lines=1-1'),
    'a parameter without a name': behind('a.txt?=1'),
    'an empty parameter': behind('a.txt?&'),
    'a bad range': behind('a.txt?lines=x'),
    'a range that counts down': behind('a.txt?lines=5-1'),
    'a range beyond numbers': behind('a.txt?bytes=0-99999999999999999999'),
    'a negative range': behind('a.txt?bytes=-1-5'),
    'a line end in a value': behind('a.txt?lines=1-1%0a'),
    'a slash in the query': behind('a.txt?/../../secret'),
    'a raw ? in a name that exists': behind('q?x=1'),
  }),
  ...row('UR04', 'NF', { 'a declared query on nothing': behind('none?lines=1-1') }),
  ...row('UR04', 'ctl', { 'an encoded ? in a name that exists': behind('q%3Fx=1') }, 'question mark\n'),
  ...row('UR04', 'ctl', { 'a declared query': behind('a.txt?lines=1-1') }, 'alpha\n'),
  // Issue 16, item 24: schemes and hosts have no case (RFC 3986, section 6.2.2.1).
  ...row(
    'UR06',
    'ctl',
    {
      'the scheme in capitals': (address) => `${address.replace('file:', 'FILE:')}/a.txt`,
      'the scheme with a capital': (address) => `${address.replace('file:', 'File:')}/a.txt`,
    },
    'alpha\n',
  ),
  ...row('UR06', 'ctl', { 'another scheme in capitals': 'RULE://guarded/open.txt' }, 'open\n'),
  ...row('UR06', 'NF', { 'what a rule denies, by a scheme in capitals': 'RULE://guarded/denied.txt' }),
  ...row('UR06', 'BAD', {
    'an encoded letter in the scheme': (address) => `${address.replace('file:', 'f%69le:')}/a.txt`,
    'a letter of another script in the scheme': (address) => `${address.replace('file:', 'fıle:')}/a.txt`,
    'a full-width colon': (address) => `${address.replace('file:', 'file：')}/a.txt`,
    'a digit before the scheme': '1rule://guarded/open.txt',
  }),
  ...row(
    'UR07',
    'ctl',
    {
      'the authority in capitals': 'rule://GUARDED/open.txt',
      'the authority with a capital': 'rule://Guarded/open.txt',
    },
    'open\n',
  ),
  ...row('UR07', 'NF', {
    'what a rule denies, by an authority in capitals': 'rule://GUARDED/denied.txt',
    'a dot behind the authority': 'rule://guarded./open.txt',
    'the authority with more behind it': 'rule://guardedx/open.txt',
    'the authority with less': 'rule://guarde/open.txt',
    'no authority': 'rule:///guarded/open.txt',
    'the path in capitals': behind('A.TXT'),
  }),
  ...row('UR07', 'BAD', { 'an encoded letter in the authority': 'rule://%67uarded/open.txt' }),
  ...row('UR07', 'ctl', { 'the authority as it is': 'rule://guarded/open.txt' }, 'open\n'),
  ...row('UR08', 'BAD', {
    ...each(
      {
        'a space': ' ',
        'a no-break space': '\u00a0',
        'a byte order mark': '\ufeff',
        'a space without width': '\u200b',
        'a joiner': '\u2060',
      },
      (space) => around(space, ''),
    ),
    ...each(
      {
        'a space behind': ' ',
        'a no-break space behind': '\u00a0',
        'a byte order mark behind': '\ufeff',
        'a space without width behind': '\u200b',
        'an ideographic space behind': '\u3000',
        'a tab behind': '\t',
        'a line end behind': '\n',
      },
      (space) => around('', space),
    ),
    'nothing but spaces': '   ',
    'a space behind the scheme': (address) => address.replace('file:', 'file :'),
    'a space in the authority': 'rule://guarded /open.txt',
  }),
  ...row('UR08', 'NF', { 'an encoded space behind': around('', '%20') }),
  ...row(
    'UR08',
    'ctl',
    { 'a space within': behind('has space.txt'), 'the same, encoded': behind('has%20space.txt') },
    'space\n',
  ),
  ...row('UR09', 'BAD', {
    'a tab': behind('a\t.txt'),
    'a carriage return': behind('a\r.txt'),
    'a line feed': behind('a\n.txt'),
    both: behind('a.txt\r\nMcp-Method: tools/call'),
    'an encoded tab': behind('a%09.txt'),
    'an encoded carriage return': behind('a%0D.txt'),
    'an encoded line feed': behind('a%0a.txt'),
    'a tab in a name that exists': behind('tab\there'),
    'an encoded tab in a name that exists': behind('tab%09here'),
    'a line feed in a name that exists': behind('new%0Aline'),
    'a tab in the scheme': (address) => address.replace('file:', 'fi\tle:'),
    'a line feed in the dots': behind('.%0a./secret'),
    'a tab in raw dots': behind('.\t./secret'),
  }),
  ...row('UR11', 'BAD', {
    ...each(controls, (control) => behind(`a${control}b`)),
    ...Object.fromEntries(
      Object.entries(controls).map(([what, control]) => [`${what}, encoded`, behind(`a${encoded(control)}b`)]),
    ),
    'an escape in a name that exists': behind('esc%1b%5B31m'),
  }),
  ...row(
    'UR12',
    'ctl',
    { 'raw letters beyond ASCII': behind('ü.txt'), 'the same, encoded': behind('%C3%BC.txt') },
    'umlaut\n',
  ),
  ...row('UR12', 'ctl', { 'the decomposed form': behind('u\u0308.txt') }, 'umlaut, decomposed\n'),
  ...row('UR12', 'ctl', { 'raw Japanese': behind('日本語/引き出し.md') }, 'drawer\n'),
  ...row(
    'UR12',
    'ctl',
    { 'raw brackets': behind('[id].tsx'), 'encoded brackets': behind('%5Bid%5D.tsx') },
    'brackets\n',
  ),
  ...row('UR12', 'ctl', { 'raw emoji': behind('emoji-🗄️') }, 'emoji\n'),
  ...row('UR12', 'ctl', { 'a right-to-left mark': behind('\u202eevil.txt') }, 'right to left\n'),
  ...row('UR12', 'BAD', { 'letters beyond ASCII in the authority': 'rule://güarded/open.txt' }),
  ...row('UR13', 'BAD', {
    'a high surrogate': behind('\ud800'),
    'a low surrogate': behind('\udc00'),
    'surrogates the wrong way round': behind('\udc00\ud800'),
    'a surrogate in the query': behind('a.txt?lines=\ud800'),
  }),
  ...row('UR13', 'ctl', { 'the replacement character itself': behind('\ufffd') }, 'replacement character\n'),
  ...row('UR14', 'BAD', { 'a homograph': 'https://раураl.com/' }),
  ...row('UR14', 'NF', { 'its ASCII form': 'https://xn--ypal-43d9g.com/', 'a page': 'https://example.com/' }),
  ...row(
    'UR16',
    'ctl',
    { 'encoded letters': behind('%61bc'), 'all encoded': behind('%61%62%63'), plain: behind('abc') },
    'abc\n',
  ),
  ...row(
    'UR16',
    'ctl',
    { 'encoded letters in the address': (address) => `${address.replace('root', '%72oot')}/abc` },
    'abc\n',
  ),
  ...row('UR17', 'BAD', {
    '8 KiB and more': behind('x'.repeat(8192)),
    '8 KiB in three bytes each': behind('あ'.repeat(2800)),
    '20 KiB of escapes': behind('%61'.repeat(7000)),
  }),
  ...row('UR17', 'NF', { 'nearly 8 KiB': behind('x'.repeat(8000)), '4 KiB': behind('dir/'.repeat(1000)) }),
  ...row('UR18', 'BAD', {
    '8000 slashes': behind('/'.repeat(8000)),
    '2000 encoded slashes': behind('%2f'.repeat(2000)),
    '2000 dot segments': behind('../'.repeat(2000)),
    '8000 question marks': behind(`a${'?'.repeat(8000)}`),
    '4000 parameters': behind(`a?${'&'.repeat(4000)}`),
    '8000 at signs': `rule://${'@'.repeat(8000)}`,
    '8000 colons': `rule${':'.repeat(8000)}`,
    '8000 brackets': `rule://${'['.repeat(8000)}\\`,
  }),
  ...row('UR18', 'NF', {
    '4000 segments': `rule://guarded/${'a/'.repeat(4000)}`,
    '4000 segments of nowhere': `no://where/${'a/'.repeat(4000)}`,
  }),
  ...row('UR19', 'BAD', {
    empty: '',
    'a colon': ':',
    'a colon and slashes': '://',
    'a scheme': 'file:',
    'a scheme and slashes': 'file://',
    'only a query': '?',
    'a scheme and a query': 'file://?x',
    'a word': 'a',
    'a number': '1',
    'null as a word': 'null',
    'a data URI without a comma': 'data:text/plain',
    'a script': 'javascript:alert(1)',
    'a URN': 'urn:uuid:0',
  }),
  // Only what the configuration names is decoded: anything else would be an echo.
  ...row('UR19', 'NF', {
    'a data URI': 'data:text/plain,x',
    'a data URI in capitals': 'DATA:text/html;base64,eA==',
    'a data URI that is damaged': 'data:;base64,!',
  }),
  ...row('UR21', 'BAD', {
    'a backslash before @': 'http://a\\@b/',
    'a fragment before @': 'http://a#@b',
    '@ twice': 'http://a@b@c/',
    'an encoded slash in the authority': 'http://a%2fb/',
    'a NUL in the authority': 'http://a\0b/',
    'a quotation mark in the authority': 'rule://"guarded"/open.txt',
    'a bar in the authority': 'rule://guarded|x/open.txt',
  }),
  ...row('UR21', 'NF', {
    'two ports': 'http://a:80:80/',
    'a list of hosts': 'http://a,b/',
    'an open bracket': 'http://[::1/',
  }),
  ...row('UR22', 'NF', {
    'git of the network': 'git://github.com/a/b',
    'a page of this machine': 'http://127.0.0.1:1/',
    'a page with the name of a mount': 'http://guarded/open.txt',
    'a mount with another scheme': 'file+rule://guarded/open.txt',
    ssh: 'ssh://localhost/etc/passwd',
    'a jar': 'jar://file/a',
  }),
  ...row('UR23', 'NF', {
    toString: 'key://objects/toString',
    __proto__: 'key://objects/__proto__',
    constructor: 'key://objects/constructor',
    'a method of a method': 'key://objects/constructor/prototype',
    'as an authority': 'key://__proto__/toStringx',
    'as an authority, again': 'key://constructor/toStringx',
    'as a scheme': 'constructor://objects/x',
    'as an address below the top': 'file:///__proto__',
    'as an address below the top, again': 'file:///constructor/prototype',
  }),
  ...row('UR23', 'ctl', { 'a file called __proto__': behind('__proto__') }, 'proto\n'),
  ...row('UR23', 'ctl', { 'a file called constructor': behind('constructor') }, 'constructor\n'),
]
