import type { Expectation } from '../harness/oracles.ts'

/** One hostile (or, as a control, honest) URI. */
export interface UriCase {
  readonly id: string
  readonly what: string
  /** The URI, given the address of the root that is served. */
  readonly uri: (address: string) => string
  readonly expect: Expectation
  /** What a control reads. */
  readonly text?: string
}

type Below = string | ((address: string) => string)

/** Cases of one row. A string stands below the root; a function makes the whole URI. */
function row(
  id: string,
  expect: Expectation,
  cases: Readonly<Record<string, Below>>,
  text?: string,
): readonly UriCase[] {
  return Object.entries(cases).map(([what, below]) => ({
    id,
    what,
    expect,
    uri: typeof below === 'function' ? below : (address) => `${address}/${below}`,
    ...(text === undefined ? {} : { text }),
  }))
}

const parent = (address: string) => address.slice(0, address.lastIndexOf('/'))
const path = (address: string) => address.slice('file://'.length)

/** Section 3.1, as far as it is about URIs. */
export const traversal: readonly UriCase[] = [
  ...row('PT01', 'BAD', {
    'to the file beside the root': '../secret',
    'from below': 'dir/../../secret',
    'and back again': '../root/a.txt',
    'that stays inside': 'dir/../a.txt',
    'at the end': 'dir/..',
    'at the end, with a slash': 'dir/../',
    'a single dot': './a.txt',
    'a single dot at the end': 'dir/.',
    'in the address itself': (address) => `${parent(address)}/./root/a.txt`,
    'above the top': () => 'file:///../../../../etc/passwd',
    alone: () => 'file:///..',
    'behind many segments': `${'dir/'.repeat(50)}${'../'.repeat(51)}secret`,
    'in another mount': () => 'rule://guarded/../objects/x',
  }),
  ...row('PT02', 'BAD', {
    'encoded dots': '%2e%2e/secret',
    'encoded dots in capitals': '%2E%2E/secret',
    'encoded dots from below': 'dir/%2e%2e/%2e%2e/secret',
    'encoded dots in the address': (address) => `${parent(address)}/%2e%2e/root/a.txt`,
    'encoded dots at the end': 'dir/%2e%2e',
  }),
  ...row('PT03', 'BAD', {
    'half encoded, first': '%2E./secret',
    'half encoded, last': '.%2e/secret',
    'a single encoded dot': '%2e/a.txt',
    'a single encoded dot at the end': 'dir/%2e',
    'a single encoded dot before a slash': 'dir/%2E/',
  }),
  ...row('PT04', 'BAD', {
    'an encoded slash': '..%2fsecret',
    'an encoded slash in capitals': '..%2Fsecret',
    'all encoded': '%2e%2e%2fsecret',
    'an encoded slash that leads nowhere bad': 'dir%2ff',
    'an encoded slash at the end': 'a.txt%2f',
    'an encoded slash at the start': '%2fetc%2fpasswd',
    'an encoded slash in the address': (address) => address.replace(/\/root$/, '%2froot/a.txt'),
  }),
  ...row('PT04', 'NF', {
    'a slash encoded twice is a name': '..%252fsecret',
    'dots and a slash encoded twice are a name': '%252e%252e%252fsecret',
    'dots encoded twice are a name': '%252e%252e/secret',
  }),
  ...row('PT06', 'BAD', {
    'a raw backslash': '..\\secret',
    'raw backslashes all over': '..\\..\\secret',
    'a raw backslash in a name that exists': 'back\\slash',
    'backslashes for slashes': (address) => address.replaceAll('/', '\\'),
    'a backslash in the authority': () => 'file:\\\\evil\\share',
  }),
  ...row('PT06', 'NF', { 'an encoded backslash is a name': '..%5csecret', 'and in capitals': '..%5Csecret' }),
  ...row('PT06', 'ctl', { 'an encoded backslash in a name that exists': 'back%5Cslash' }, 'backslash\n'),
  ...row('PT07', 'BAD', {
    'overlong dots': '%c0%ae%c0%ae/secret',
    'overlong dots in three bytes': '%e0%80%ae%e0%80%ae/secret',
    'an overlong slash': '..%c0%afsecret',
    'an overlong slash in four bytes': '..%f0%80%80%afsecret',
    'an overlong NUL': 'a.txt%c0%80',
  }),
  ...row('PT08', 'BAD', {
    'a byte that is never UTF-8': '%ff',
    'a surrogate': '%ED%A0%80',
    'a pair of surrogates (CESU-8)': '%ED%A0%BD%ED%B0%80',
    'a truncated character': '%e3%81',
    'a stray continuation': 'a%80b',
    'beyond Unicode': '%f4%90%80%80',
    'a percent sign that escapes nothing before a truncated character': '%%e3%81',
  }),
  // Issue 16, item 24: a % that escapes nothing is itself, since VS Code sends it so. It is part of a name then.
  ...row('PT08', 'NF', {
    'a lone percent sign': 'a%',
    'a percent sign before no digits': 'a%zz',
    'half an escape': 'a%4',
    'an escape of Unicode (%u)': '%u002e%u002e/secret',
    'a percent sign before an escape': '%%2e%2e/secret',
  }),
  ...row('PT09', 'BAD', {
    'NUL behind a name': 'a.txt%00',
    'NUL before an extension': '.env%00.txt',
    'NUL alone': '%00',
    'NUL, raw': 'a.txt\0',
    'NUL in the address': (address) => `${address}%00/a.txt`,
  }),
  ...row('PT11', 'BAD', {
    'an empty first segment': (address) => `file:///${path(address)}/a.txt`,
    'two empty first segments': (address) => `file:////${path(address)}/a.txt`,
    'an empty segment at the root': '/a.txt',
    'an empty segment inside': 'dir//f',
    'empty segments before the end': 'dir//',
    'an empty segment in the address': (address) => `${address.replace(/\/root$/, '//root')}/a.txt`,
  }),
  ...row('PT12', 'BAD', {
    'no slash': (address) => `file:${path(address).slice(1)}/a.txt`,
    'one slash, and then dots': (address) => `file:${path(address)}/../secret`,
    'one slash of another scheme': () => 'rule:/guarded/open.txt',
    'a path': (address) => `${path(address)}/a.txt`,
    'a relative path': () => 'a.txt',
    'a reference without a scheme': (address) => `//${path(address)}/a.txt`,
    'a URL of a URL': (address) => `url:${address}/a.txt`,
  }),
  // Issue 16, item 24: file:/path and file://localhost/path are file:///path (RFC 8089).
  ...row(
    'PT12',
    'ctl',
    {
      'one slash': (address) => `file:${path(address)}/a.txt`,
      'one slash, and the scheme in capitals': (address) => `FILE:${path(address)}/a.txt`,
    },
    'alpha\n',
  ),
  ...row(
    'PT13',
    'ctl',
    {
      localhost: (address) => `file://localhost${path(address)}/a.txt`,
      'localhost in capitals': (address) => `file://LocalHost${path(address)}/a.txt`,
    },
    'alpha\n',
  ),
  ...row('PT13', 'BAD', {
    'localhost with a port': (address) => `file://localhost:80${path(address)}/a.txt`,
    'localhost with a dot': (address) => `file://localhost.${path(address)}/a.txt`,
    'a host': () => 'file://evil/share',
    'an address': (address) => `file://127.0.0.1${path(address)}/a.txt`,
    'an IPv6 address': (address) => `file://[::1]${path(address)}/a.txt`,
    'a dot': (address) => `file://.${path(address)}/a.txt`,
    'two dots': (address) => `file://..${path(address)}/a.txt`,
    'an encoded slash': (address) => `file://%2f${path(address)}/a.txt`,
  }),
  ...row('PT14', 'NF', {
    'a drive': () => 'file:///C:/Windows/win.ini',
    'a drive with a bar': () => 'file:///C|/x',
    'a drive below the root': 'C:/x',
    'a device of another system': 'CON',
    'an alternate stream': 'a.txt::$DATA',
    'a short name': 'GIT~1/config',
  }),
  ...row('PT14', 'BAD', { 'a drive with a backslash': 'C:\\x' }),
  ...row('PT14', 'ctl', { 'a name that looks like a drive': 'C:%5Cx' }, 'looks like a drive\n'),
  ...row('PT16', 'NF', {
    'a home of somebody': '~root/.ssh/id_rsa',
    'a home': '~/.ssh/id_rsa',
    'a variable': '$HOME/x',
    'a variable in braces': '${HOME}/x',
    'a variable of Windows': '%25USERPROFILE%25',
    'a command': '`id`',
    'a command in brackets': '$(id)',
    'a glob': '*.txt',
    'a question mark for a character': 'a%3Ftxt',
    'a brace': '{a,b}.txt',
    'at the top': () => 'file:///~root/.ssh/id_rsa',
    'an option': '--help',
    'a file of the system': () => 'file:///etc/passwd',
    'the environment': () => 'file:///proc/self/environ',
    'a folder that begins as the root does': (address) => `${address}-evil/f`,
    'the parent': parent,
    'the parent as a directory': (address) => `${parent(address)}/`,
    'the file beside': (address) => `${parent(address)}/secret`,
    'the top': () => 'file:///',
  }),
]

/** The rows of section 3.1 that are about what lies in the folder: the central ones, through the whole process. */
export const folder: readonly UriCase[] = [
  ...row('PT17', 'NF', {
    'an absolute link to a file outside': 'link-absolute',
    'a relative link to a file outside': 'link-relative',
    'a link to a directory outside': 'link-directory',
    'a file behind a link to a directory outside': 'link-directory/secret',
    'the listing of a directory outside': 'link-directory/',
    'a link to itself': 'link-loop',
    'a link to the environment': 'link-environ',
    'a link to a descriptor': 'link-stdin',
    'a file behind a link to the root of the system': 'link-root/etc/passwd',
    'a link to an excluded file': 'link-denied',
    'a link to a link': 'dir/link-chain',
    'a file behind a link to the parent': 'link-up/secret',
    'back through a link to the parent': 'link-up/root/a.txt',
  }),
  ...row('PT33', 'NF', {
    'a file as a directory': 'dir/f/x',
    'a file as a directory, deeper': 'a.txt/x/y/z',
    'a directory that is not there': 'none/',
    'a file in a directory that is not there': 'none/f',
  }),
  ...row('PT33', 'ctl', {
    'a directory, listed': 'dir/',
    'a directory, as its children': 'dir',
    'the root, listed': '',
  }),
  ...row('PT37', 'NF', {
    '.env': '.env',
    '.env of a directory': 'dir/.env',
    '.env.local': '.env.local',
    'a backup of .env': '.env~',
    'the configuration of git': '.git/config',
    '.git': '.git',
    '.git, listed': '.git/',
    'a key in .ssh': '.ssh/id_rsa',
    'a key': 'id_rsa',
    'a certificate': 'server.pem',
    'another key': 'server.key',
    'a dependency': 'node_modules/m/index.js',
    'dependencies, listed': 'node_modules/',
    'a backup': 'a.txt~',
    'a lock file': '.%23a.txt',
    'a swap file': '.a.txt.swp',
  }),
  ...row('PT38', 'NF', {
    'an encoded letter': '%2eenv',
    'all encoded': '%2e%65%6e%76',
    'a slash behind it': '.env/',
    'a file below it': '.env/x',
    'a space behind it': '.env%20',
    'a space before it': '%20.env',
    'a dot behind it': '.env.',
    capitals: '.ENV',
    'the long s': '.%C5%BFsh/id_rsa',
    'a mark without width': '.en%E2%80%8Bv',
    'a full-width letter': '.%EF%BD%85nv',
    'a query that is declared': '.env?lines=1-10',
    'encoded, with a query': '%2eenv?bytes=0-10',
    'git in capitals': '.GIT/config',
    'git by its short name': 'git~1/config',
    'a key in capitals': 'ID_RSA',
    'a certificate with an encoded dot': 'server%2epem',
    'a stream of Windows': '.env::$DATA',
  }),
  ...row('PT38', 'BAD', {
    'a dot segment before it': './.env',
    'a dot segment from a directory': 'dir/../.env',
    'an encoded dot segment before it': '%2e/.env',
    'an empty segment before it': '/.env',
    'NUL behind it': '.env%00',
    'NUL and another extension behind it': '.env%00.txt',
    'a fragment': '.env#x',
    'a raw space behind it': '.env ',
    'a line end behind it': '.env%0a',
    'a delete character in it': '.en%7fv',
  }),
  ...row('PT43', 'ctl', { 'dots within a name': 'a..b' }, 'dots within\n'),
  ...row('PT43', 'ctl', { 'dots behind a name': 'a...' }, 'dots behind\n'),
  ...row('PT43', 'ctl', { 'an encoded letter': '%41', 'the letter': 'A' }, 'capital a\n'),
  ...row('PT43', 'ctl', { 'a percent sign in a name': 'percent%2541.txt' }, 'a percent sign\n'),
  ...row('PT43', 'NF', { 'a percent sign in a name, not encoded': 'percent%41.txt' }),
  ...row('PT43', 'ctl', { 'a minus before a name': '-rf' }, 'minus\n'),
  ...row('PT43', 'ctl', { 'a name of 255 bytes': 'x'.repeat(255) }, 'long name\n'),
  ...row('PT43', 'NF', {
    'a name of 256 bytes': 'x'.repeat(256),
    'a path longer than the system takes': 'dir/'.repeat(1900),
  }),
]
