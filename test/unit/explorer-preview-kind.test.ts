import { describe, expect, test } from 'vitest'
import {
  imageTypeOf,
  languageOf,
  languageOfFence,
  mediaTypeOf,
  shapeOf,
} from '../../src/explorer/web/preview/model/kind.ts'

const bytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))
const kindOf = (mimeType: string | undefined, text: string, uri = 'file:///x') => shapeOf({ uri, mimeType, text }).kind

describe('the preview of a content', () => {
  test('depends on its MIME type, and is "empty" if the content is empty', () => {
    expect(kindOf('text/markdown; charset=utf-8', '# a')).toBe('markdown')
    expect(kindOf('TEXT/HTML', '<p>')).toBe('page')
    expect(kindOf('image/svg+xml', '<svg/>')).toBe('drawing')
    expect(kindOf('application/vnd.api+json', '{}')).toBe('json')
    expect(kindOf('application/x-ndjson', '{}\n')).toBe('lines')
    expect(kindOf('text/csv', 'a,b')).toBe('table')
    expect(kindOf('inode/directory', '')).toBe('directory')
    expect(kindOf('text/markdown', '')).toBe('empty')
  })

  test('is never HTML for text/plain, an unknown or an invalid MIME type, whatever the content and the name', () => {
    expect(kindOf('text/plain', '<!doctype html><script>x</script>', 'file:///a.html')).toBe('text')
    expect(kindOf('text/plain', '<svg onload="x"/>', 'file:///a.svg')).toBe('text')
    expect(kindOf(undefined, '<html>', 'file:///a.html')).toBe('text')
    expect(kindOf('text/html\r\nX: y', '<html>', 'file:///a')).toBe('text')
  })

  test('depends on the name or the content if the MIME type is unknown or text/plain', () => {
    expect(kindOf(undefined, 'a,b', 'file:///a.csv?lines=1-2')).toBe('table')
    expect(kindOf('text/plain', '{}', 'file:///a.jsonl')).toBe('lines')
    expect(kindOf('text/plain', 'diff --git a/x b/x\n')).toBe('diff')
  })

  test('of an image or a PDF depends on its bytes, not on its MIME type', () => {
    const png = bytes('\x89PNG\r\n\x1a\n')
    expect(shapeOf({ uri: 'a', mimeType: 'text/html', bytes: png })).toEqual({ kind: 'image', mediaType: 'image/png' })
    expect(shapeOf({ uri: 'a', mimeType: 'image/png', bytes: bytes('<html>') }).kind).toBe('binary')
    expect(shapeOf({ uri: 'a', mimeType: 'text/plain', bytes: bytes('%PDF-1.7 <script>') }).kind).toBe('pdf')
    expect(imageTypeOf(bytes('RIFF....WEBPVP8 '))).toBe('image/webp')
    expect(imageTypeOf(bytes('....ftypavif'))).toBe('image/avif')
  })

  test('shows a text in the language of its MIME type or its name, also if the type is video', () => {
    expect(shapeOf({ uri: 'file:///a/b.ts', mimeType: 'video/mp2t', text: 'let a' })).toEqual({
      kind: 'text',
      language: 'typescript',
    })
    expect(languageOf('text/x-python', 'db://a')).toBe('python')
    expect(languageOf('text/plain', 'file:///Dockerfile')).toBe('dockerfile')
    expect(languageOf('text/plain', 'file:///go')).toBeUndefined()
    expect(languageOf('application/sql', 'sqlite://shop/x/schema.sql')).toBe('sql')
    expect([languageOfFence('tsx {1,2}'), languageOfFence('shell'), languageOfFence('nope')]).toEqual([
      'typescript',
      'bash',
      undefined,
    ])
  })

  test('recognizes a MIME type with parameters, also one that hikidashi defines', () => {
    const mimeType = 'application/json;format=hikidashi.SearchFound'
    expect(shapeOf({ uri: 'a', mimeType, text: '{}' })).toEqual({
      kind: 'json',
      language: 'json',
      format: 'SearchFound',
    })
    expect(mediaTypeOf(' Text/CSV ; header=present')).toBe('text/csv')
    expect(mediaTypeOf('nonsense')).toBeUndefined()
  })
})
