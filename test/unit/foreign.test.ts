import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  foreignUriOf,
  hasUsualSpelling,
  isOfTemplate,
  pathOfForeign,
  templateOfForeign,
  withQueryParams,
} from '../../src/core/foreign.ts'
import { isPath } from '../../src/core/path.ts'
import { formatUri, parseAddress, parseUri } from '../../src/core/uri.ts'
import { volumeOf } from '../support/volume.ts'

const usual = {
  'file:///srv/docs/a.md': 'file/srv/docs/a.md',
  'file:///srv/x%20y.txt': 'file/srv/x y.txt',
  'file:///C:/a': 'file/C:/a',
  'notes://a/b': 'notes/a/b',
  'file://host/a': '=file/host/a',
  'notes://host': 'notes/host',
  'note:today': 'note:/today',
  'data:,x': 'data:/,x',
  'urn:isbn:0451450523': 'urn:/isbn:0451450523',
  'https://example.org/%E6%97%A5': 'https/example.org/日',
}
const unusual = {
  'notes://a/b?x=1': 'notes/a/b?x=1',
  'notes://a/b?u=http://c': 'notes/a/b?u=http:/=/c',
  'file:///srv/x y.txt': 'file/srv/=x y.txt',
  'notes://a/日': 'notes/a/=日',
  'notes://a/b%2Fc': 'notes/a/=b%2Fc',
  'notes://a/%62': 'notes/a/=%62',
  'notes://a/=b': 'notes/a/==b',
  'notes://a//b/': 'notes/a/=/b/=',
  'notes://a/../b': 'notes/a/=../b',
  'notes://a/%2e%2e/b': 'notes/a/=%2e%2e/b',
  'notes://a/%': 'notes/a/=%',
  'notes://a#b': 'notes/a#b',
  'Notes://a': 'Notes/a',
  'notes://Host/a': 'notes/Host/a',
  'file:///': 'file/=',
  'file://': '=file/=',
  'memo://': 'memo/=',
  'memo:///x': 'memo/=/x',
  'memo:/x': 'memo:/=/x',
  'http://[::1]:80/a': 'http/=[::1]:80/a',
  'not a uri/x': '=/=not a uri/x',
  'README.md': '=/README.md',
}

test.each(Object.entries({ ...usual, ...unusual }))('the URI %s of another server has the path %s', (uri, path) => {
  expect(pathOfForeign(uri)).toBe(path)
  expect(foreignUriOf(path)).toBe(uri)
  expect(hasUsualSpelling(path)).toBe(uri in usual)
})

test('a URI that cannot be written as a path gets a path made of its hash, from which it cannot be recovered', () => {
  for (const uri of ['notes://a/\u0000', 'notes://a/\u2028', `notes://${'x'.repeat(9000)}`, 'notes://\ud800']) {
    const path = pathOfForeign(uri)
    expect(path).toMatch(/^==\/[\w-]{43}$/)
    expect(foreignUriOf(path)).toBeUndefined()
    expect(hasUsualSpelling(path)).toBe(false)
  }
  expect(pathOfForeign('notes://a/\u0000')).not.toBe(pathOfForeign('notes://a/\u0001'))
})

test('a path that no URI of another server has gives no URI', () => {
  for (const path of ['', 'notes', '=', '==/x', 'notes/=b', '=file/host/=b', '=x/y', '1a/b', '=/notes://a', 'file/=x'])
    expect(foreignUriOf(path), path).toBeUndefined()
})

test('a directory of another server has a URI with a slash at its end', () => {
  expect(foreignUriOf('notes/a/')).toBe('notes://a/')
  expect(foreignUriOf('notes/')).toBe('notes://')
  expect(foreignUriOf('file/')).toBe('file:///')
  expect(foreignUriOf('file/srv/x y/')).toBe('file:///srv/x%20y/')
})

const piece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('', '.', '..', '=', '%2F', '%41', '?x=1', '#', ' ', 'a b', '日本', '%E6%97%A5', '\\', '\u0000', '%'),
)
const scheme = fc.constantFrom('file://', 'file:///', 'notes://', 'x:', 'X://', '', 'data:', '=', 'file:')
const anyUri = fc.tuple(scheme, fc.array(piece, { maxLength: 6 })).map(([head, rest]) => head + rest.join('/'))

describe('any URI of another server', () => {
  const address = parseAddress('remote://there')

  test('has a valid path, which gives the same URI again unless it is a hash', () => {
    fc.assert(
      fc.property(fc.oneof(anyUri, fc.string({ unit: 'binary' })), (uri) => {
        const path = pathOfForeign(uri)
        expect(isPath(path)).toBe(true)
        const { segments } = parseUri(formatUri(address, path))
        expect(segments.join('/')).toBe(path)
        if (!path.startsWith('==/')) expect(foreignUriOf(path)).toBe(uri)
      }),
      { numRuns: volumeOf(1000) },
    )
  })

  test('has exactly one path', () => {
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 5 }), (pieces) => {
        const uri = foreignUriOf(pieces.join('/'))
        if (uri !== undefined && !uri.endsWith('/')) expect(pathOfForeign(uri)).toBe(pieces.join('/'))
      }),
      { numRuns: volumeOf(1000) },
    )
  })
})

test('a template of another server becomes a template of paths, or none if that is impossible', () => {
  const templates = {
    'notes://{user}/{+path}{?x}': 'notes/{user}/{+path}{?x}',
    'file:///{+path}': 'file/{+path}',
    'file://{host}/{+path}': '=file/{host}/{+path}',
    'note:{id}': 'note:/{id}',
    'db://shop/{table}/rows{?limit,after}': 'db/shop/{table}/rows{?limit,after}',
    'db://shop/a%20b/{table}': 'db/shop/a%20b/{table}',
    'db://shop/x-{id}.md?fixed=1{&more}': 'db/shop/x-{id}.md?fixed=1{&more}',
    'a://b{/path*}': 'a/b{/path*}',
  }
  for (const [theirs, ours] of Object.entries(templates)) expect(templateOfForeign(theirs), theirs).toBe(ours)
  for (const none of ['{scheme}://x', '{+uri}', 'plain', 'a://b//{c}', 'a://b/../{c}', 'a://b c/{d}', 'a://{b}/'])
    expect(templateOfForeign(none), none).toBeUndefined()
})

test('parameters in URIs of another server are percent-encoded', () => {
  expect(withQueryParams('a://b', new Map())).toBe('a://b')
  expect(withQueryParams('a://b', new Map([['q', 'x&y=z 日']]))).toBe('a://b?q=x%26y%3Dz%20%E6%97%A5')
})

test('a path with capitals in its host is valid only if a template of the other server spells the host so', () => {
  expect(isOfTemplate('notes/Inbox/5', 'notes/Inbox/{id}')).toBe(true)
  expect(isOfTemplate('notes/INBOX/5', 'notes/Inbox/{id}')).toBe(false)
  expect(isOfTemplate('notes/Inbox/=5', 'notes/Inbox/{id}')).toBe(false)
  expect(isOfTemplate('notes/Inbox/5', 'notes/{box}/{id}')).toBe(false)
})
