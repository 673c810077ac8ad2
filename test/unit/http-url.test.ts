import { describe, expect, test } from 'vitest'
import {
  addressBlock,
  addressBytes,
  formatHttpUrl,
  httpUrlBelow,
  isAllowedAddress,
  isInBlock,
  isMetadataAddress,
  isPublicAddress,
  originOf,
  parseHttpUrl,
  resolveHttpUrl,
} from '../../src/core/http-url.ts'

const bytes = (text: string) => {
  const found = addressBytes(text)
  if (found === undefined) throw new Error(`${text} is no address`)
  return found
}

describe('an IP address', () => {
  test.each([
    ['192.0.2.1', [192, 0, 2, 1]],
    ['::', Array.from({ length: 16 }, () => 0)],
    ['::1', [...Array.from({ length: 15 }, () => 0), 1]],
    ['1:2:3:4:5:6:7:8', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ['::ffff:192.0.2.1', [...Array.from({ length: 10 }, () => 0), 255, 255, 192, 0, 2, 1]],
    ['FE80::A', [0xfe, 0x80, ...Array.from({ length: 13 }, () => 0), 10]],
    ['1:2:3:4:5:6:192.0.2.1', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 192, 0, 2, 1]],
  ])('is parsed into its bytes: %s', (text, expected) => {
    expect(addressBytes(text)).toEqual(expected)
  })

  test.each([
    ...[
      '',
      '1',
      '0',
      '127.1',
      '1.2.3',
      '1.2.3.4.5',
      '1.2.3.256',
      '01.2.3.4',
      '0x7f.0.0.1',
      '2130706433',
      '1.2.3.4.',
      ' 1.2.3.4',
    ],
    ...[
      '١.٢.٣.٤',
      '①②⑦.⓪.⓪.①',
      '1.2.3.4/8',
      ':',
      ':::',
      '1::2::3',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '::12345',
      '::g',
    ],
    ...['1:2:3:4:5:6:7::8', '::1.2.3', '::1.2.3.4:5', '1.2.3.4::', 'fe80::1%eth0', '[::1]', '::ffff:0x7f.0.0.1'],
  ])('is invalid: %j', (text) => {
    expect(addressBytes(text)).toBeUndefined()
  })

  test('is in a block of addresses if it begins with the bits of the block, and in no invalid block or block of the other IP version', () => {
    const block = (text: string) => addressBlock(text) ?? { bytes: [], bits: -1 }
    expect(isInBlock(bytes('10.255.0.1'), block('10.0.0.0/8'))).toBe(true)
    expect(isInBlock(bytes('11.0.0.1'), block('10.0.0.0/8'))).toBe(false)
    expect(isInBlock(bytes('172.31.0.1'), block('172.16.0.0/12'))).toBe(true)
    expect(isInBlock(bytes('172.32.0.1'), block('172.16.0.0/12'))).toBe(false)
    expect(isInBlock(bytes('9.9.9.9'), block('0.0.0.0/0'))).toBe(true)
    expect(isInBlock(bytes('::9'), block('0.0.0.0/0'))).toBe(false)
    expect(isInBlock(bytes('1.2.3.4'), block('1.2.3.4'))).toBe(true)
    expect(isInBlock(bytes('1.2.3.5'), block('1.2.3.4'))).toBe(false)
    for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/08', '10/8', '::/129', 'x/8', ''])
      expect(addressBlock(text)).toBeUndefined()
  })

  test.each([
    ...['8.8.8.8', '93.184.215.14', '1.1.1.1', '172.15.0.1', '172.32.0.1', '192.167.0.1', '223.255.255.1'],
    ...['2606:4700::1111', '2a00:1450::1', '64:ff9b::808:808', '::ffff:8.8.8.8', '2002:808:808::1'],
  ])('is public, and so allowed: %s', (text) => {
    expect(isPublicAddress(bytes(text))).toBe(true)
    expect(isAllowedAddress(bytes(text), [])).toBe(true)
  })

  test.each([
    ...[
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '127.0.0.1',
      '127.255.255.254',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
    ],
    ...[
      '192.0.0.1',
      '192.0.2.1',
      '192.88.99.1',
      '192.168.1.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
    ],
    ...[
      '240.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:0:127.0.0.1',
      'fc00::1',
      'fd00:ec2::254',
    ],
    ...[
      'fe80::1',
      'fec0::1',
      'ff02::1',
      '64:ff9b::7f00:1',
      '64:ff9b:1::7f00:1',
      '2002:7f00:1::',
      '2002:a9fe:a9fe::',
      '2001::1',
    ],
    ...['2001:db8::1', '2001:10::1', '100::1', '3fff::1', '5f00::1', '::ffff:10.0.0.1', '2002:c0a8:101::1'],
  ])('is not public, and so not allowed: %s', (text) => {
    expect(isPublicAddress(bytes(text))).toBe(false)
    expect(isAllowedAddress(bytes(text), [])).toBe(false)
  })

  test('that is private may be allowed, and that of a metadata service never', () => {
    const all = ['0.0.0.0/0', '::/0'].flatMap((text) => addressBlock(text) ?? [])
    for (const text of ['10.0.0.1', '127.0.0.1', '::1', 'fd00::1', '::ffff:10.0.0.1'])
      expect(isAllowedAddress(bytes(text), all)).toBe(true)
    for (const text of [
      ...[
        '169.254.169.254',
        '::ffff:169.254.169.254',
        '64:ff9b::a9fe:a9fe',
        '2002:a9fe:a9fe::',
        'fd00:ec2::254',
        'fe80::1',
      ],
      ...['100.100.100.200', '192.0.0.192', '0.0.0.0', '::'],
    ]) {
      expect(isMetadataAddress(bytes(text)), text).toBe(true)
      expect(isAllowedAddress(bytes(text), all), text).toBe(false)
    }
    const here = addressBlock('127.0.0.1') ?? { bytes: [], bits: 0 }
    expect(isAllowedAddress(bytes('::ffff:127.0.0.1'), [here])).toBe(true)
    expect(isAllowedAddress(bytes('127.0.0.2'), [here])).toBe(false)
  })
})

describe('an HTTP URL', () => {
  test.each([
    ['https://www.example.org', 'https://www.example.org/'],
    ['HTTPS://WWW.Example.ORG:443/A?b=c#d', 'https://www.example.org/A?b=c'],
    ['http://127.0.0.1:8080/x', 'http://127.0.0.1:8080/x'],
    ['http://[::1]:80/', 'http://[::1]/'],
    ['https://a/b/../c/./d/%2e%2e/e', 'https://a/c/e'],
    ['https://a/..', 'https://a/'],
    ['https://a/b/..', 'https://a/'],
    ['https://a/x y/日?q=ü"<>', 'https://a/x%20y/%E6%97%A5?q=%C3%BC%22%3C%3E'],
    ['https://xn--80ak6aa92e.com/', 'https://xn--80ak6aa92e.com/'],
    ['https://a/b//c', 'https://a/b//c'],
  ])('is normalized: %s to %s', (text, expected) => {
    expect(formatHttpUrl(parseHttpUrl(text))).toBe(expected)
  })

  test.each([
    ...[
      '',
      'a',
      '/a',
      '//a',
      'ftp://a',
      'file:///a',
      'javascript:x',
      'https:/a',
      'https:a',
      'https://',
      'https:///a',
      'https://?x',
    ],
    ...[
      'https://u@a',
      'https://u:p@a',
      'https://a@b@c',
      'https://a\\@b/',
      'https://a/\\b',
      'https://a:0',
      'https://a:65536',
      'https://a:x',
    ],
    ...[
      'https://a:80:80',
      'https://a:',
      'https://a.',
      'https://.a',
      'https://a..b',
      'https://-a',
      'https://a-',
      'https://1',
      'https://0',
    ],
    ...[
      'https://127.1',
      'https://2130706433',
      'https://0x7f.1',
      'https://0x7f000001',
      'https://0177.0.0.1',
      'https://1.2.3.4.5',
      'https://a.1',
    ],
    ...[
      'https://①②⑦.⓪.⓪.①',
      'https://раураl.com',
      'https://%31',
      'https://a%2eb',
      'https://[::1',
      'https://::1',
      'https://[127.0.0.1]',
    ],
    ...[
      'https://[fe80::1%25eth0]',
      'https://[fe80::1%eth0]',
      'https://a b',
      'https://a\tb',
      'https://a/\r\nX: y',
      'https://a/\0',
      'https://a/\ud800',
    ],
    `https://a/${'x'.repeat(9000)}`,
  ])('is invalid: %j', (text) => {
    expect(() => parseHttpUrl(text)).toThrow(expect.objectContaining({ kind: 'invalid' }))
  })

  test.each(['https://a:x', 'https://a:', 'https://a:0', 'https://[::1]:123456'])(
    'is refused with a message about its port: %j',
    (text) => {
      expect(() => parseHttpUrl(text)).toThrow(/port of the URL/)
    },
  )

  test.each([
    ['/x', 'https://a/x'],
    ['x', 'https://a/b/x'],
    ['./x', 'https://a/b/x'],
    ['../x', 'https://a/x'],
    ['../../../x', 'https://a/x'],
    ['?y', 'https://a/b/c?y'],
    ['', 'https://a/b/c?d'],
    ['#e', 'https://a/b/c?d'],
    ['//z/x', 'https://z/x'],
    ['http://z:81/x', 'http://z:81/x'],
    ['x/', 'https://a/b/x/'],
    ['x:y', undefined],
    ['file:///etc/passwd', undefined],
    ['/x\r\ny', undefined],
    ['\\\\z\\x', undefined],
    ['//u@z/', undefined],
    ['//127.1/', undefined],
  ])('is resolved with the reference %j to %s (undefined: refused)', (reference, expected) => {
    const base = parseHttpUrl('https://a/b/c?d')
    if (expected === undefined) expect(() => resolveHttpUrl(base, reference)).toThrow()
    else expect(formatHttpUrl(resolveHttpUrl(base, reference))).toBe(expected)
  })

  test('is joined with a path below it, and has an origin without the default port', () => {
    const below = (base: string, path: string) => formatHttpUrl(httpUrlBelow(parseHttpUrl(base), path))
    expect(below('https://a', 'b/c')).toBe('https://a/b/c')
    expect(below('https://a/v1/', 'b?c=d')).toBe('https://a/v1/b?c=d')
    expect(below('https://a/v1', '')).toBe('https://a/v1')
    expect(below('https://a/v1', '?q')).toBe('https://a/v1?q')
    expect(originOf(parseHttpUrl('https://a:443'))).toBe('https://a')
    expect(originOf(parseHttpUrl('http://a:443'))).toBe('http://a:443')
    expect(originOf(parseHttpUrl('https://[::1]:8443/x'))).toBe('https://[::1]:8443')
  })
})
