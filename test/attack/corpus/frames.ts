/** One hostile message, before it is a message: bytes. */
export interface FrameCase {
  readonly id: string
  readonly what: string
  /** The bytes, given an honest message as JSON. */
  readonly bytes: (honest: string) => Uint8Array
}

const text = (make: (honest: string) => string) => (honest: string) => Buffer.from(make(honest))
/** The message with bytes in place of the name of its method. */
const within = (bytes: readonly number[]) => (honest: string) => {
  const at = honest.indexOf('resources/')
  return Buffer.concat([Buffer.from(honest.slice(0, at)), Buffer.from(bytes), Buffer.from(honest.slice(at))])
}
const utf32 = (honest: string) => Buffer.concat([...honest].map((c) => Buffer.from([c.charCodeAt(0), 0, 0, 0])))
/** The message with a member behind its last one. */
const member = (json: string) => text((honest) => honest.replace(/\}$/, `,${json}}`))
const param = (json: string) => text((honest) => honest.replace(/"params":\{/, `"params":{${json},`))

function row(id: string, cases: Readonly<Record<string, FrameCase['bytes']>>): readonly FrameCase[] {
  return Object.entries(cases).map(([what, bytes]) => ({ id, what, bytes }))
}

/** Section 3.10: what is no JSON text as it has to be. Each is answered with -32700 and no id. */
export const faultyFrames: readonly FrameCase[] = [
  ...row('JR02', {
    '65 levels': text(() => `{"a":${'['.repeat(64)}${']'.repeat(64)}}`),
    '65 objects': text(() => `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`),
    'half a million open brackets': text(() => '['.repeat(500_000)),
    'as many open objects': text(() => '{"a":'.repeat(100_000)),
    'as many closed brackets': text(() => ']'.repeat(500_000)),
    'open and closed': text(() => '[]'.repeat(250_000)),
    'depth in the params of an honest message': param(`"deep":${'['.repeat(100)}${']'.repeat(100)}`),
    'depth behind a string that never ends': text(() => `{"a":"${'\\'.repeat(400_000)}`),
    'quotation marks': text(() => '"'.repeat(500_001)),
    'escaped quotation marks': text(() => `"${'\\"'.repeat(250_000)}`),
    'a number of half a million digits and a letter': text(() => `${'9'.repeat(500_000)}x`),
  }),
  ...row('JR04', {
    'the method twice': member('"method":"resources/list"'),
    'the method twice, once with an escape': member('"meth\\u006fd":"resources/list"'),
    'the id twice': member('"id":2'),
    'the version twice': member('"jsonrpc":"2.0"'),
    'the params twice': member('"params":{}'),
    'the URI twice': param('"uri":"file:///a"'),
    'the URI twice, once with an escape': param('"\\u0075ri":"file:///a"'),
    'the URI twice, all of it in escapes': param('"\\u0075\\u0072\\u0069":"file:///a"'),
    'a member twice that means nothing': param('"x":{"y":1,"y":2}'),
    'a member twice, deep': param('"x":[[[{"y":1,"z":{},"y":[]}]]]'),
    'a member without a name twice': param('"x":{"":1,"":2}'),
    '__proto__ twice': param('"x":{"__proto__":{},"__proto__":{}}'),
    'a slash with an escape': param('"x":{"a/b":1,"a\\/b":2}'),
    'a surrogate in capitals': param('"x":{"\\ud83d\\ude00":1,"\\uD83D\\uDE00":2,"\\ud83d\\uDE00":3}'),
    'a letter beyond ASCII, once with an escape': param('"x":{"é":1,"\\u00e9":2}'),
    'a line separator, once with an escape': param('"x":{"\u2028":1,"\\u2028":2}'),
  }),
  ...row('JR11', {
    'a byte that is never UTF-8': within([0xff]),
    'an overlong slash': within([0xc0, 0xaf]),
    'an overlong NUL': within([0xc0, 0x80]),
    'a surrogate': within([0xed, 0xa0, 0x80]),
    'a truncated character': within([0xe3, 0x81]),
    'a stray continuation': within([0x80]),
    'beyond Unicode': within([0xf4, 0x90, 0x80, 0x80]),
    'Latin-1': within([0xe9]),
    'a truncated character at the end': (honest) => Buffer.concat([Buffer.from(honest), Buffer.from([0xe3, 0x81])]),
  }),
  ...row('JR12', {
    'a byte order mark': text((honest) => `\ufeff${honest}`),
    'two of them': text((honest) => `\ufeff\ufeff${honest}`),
    'a byte order mark behind': text((honest) => `${honest}\ufeff`),
    'UTF-16LE with its mark': (honest) => Buffer.from(`\ufeff${honest}`, 'utf16le').subarray(0, -1),
    'UTF-16BE': (honest) => Buffer.from(honest, 'utf16le').swap16(),
    'UTF-32': utf32,
    'UTF-7': text((honest) => honest.replaceAll('"', '+ACI-')),
  }),
  ...row('JR16', {
    'more behind it': text((honest) => `${honest}x`),
    'two messages': text((honest) => `${honest}${honest}`),
    'two messages with a comma': text((honest) => `${honest},${honest}`),
    'a comment': text((honest) => honest.replace('{', '{/**/')),
    'a comment behind it': text((honest) => `${honest}//`),
    NaN: member('"x":NaN'),
    Infinity: member('"x":Infinity'),
    undefined: member('"x":undefined'),
    'a number in hexadecimal': member('"x":0x10'),
    'a number with a plus': member('"x":+1'),
    'a number with a zero before it': member('"x":01'),
    'a number with a dot and nothing': member('"x":1.'),
    'single quotation marks': text((honest) => honest.replaceAll('"', "'")),
    'a comma too many': text((honest) => honest.replace(/\}$/, ',}')),
    'a name without quotation marks': text((honest) => honest.replace('"id"', 'id')),
    'a control character in a string': member('"x":"\u0001"'),
    'a tab in a string': member('"x":"\t"'),
    'a wrong escape': member('"x":"\\x41"'),
    'half an escape': member('"x":"\\u00"'),
    'a no-break space': text((honest) => `\u00a0${honest}`),
    'no end': text((honest) => honest.slice(0, -1)),
    'a word': text(() => 'hello'),
    'a request of HTTP': text(() => 'GET /mcp HTTP/1.1'),
    'headers of the language server protocol': text((honest) => `Content-Length: ${honest.length}`),
    'a NUL behind it': text((honest) => `${honest}\0`),
    'a NUL before it': text((honest) => `\0${honest}`),
    'a record separator': text((honest) => `\u001e${honest}`),
  }),
]
