import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findEncoded } from '../../src/secrets/encoded.ts'
import { findSecretsByRules } from '../../src/secrets/find.ts'
import { findKnownTokens } from '../../src/secrets/shapes.ts'
import { findTableSecrets } from '../../src/secrets/tables.ts'
import { volumeOf } from '../support/volume.ts'

const beginnings =
  'LTAI AKIA ASIA sk-_ gsk_ hf_ r8_ oy2 AC SK key- eyJ SG. dp. 1//0 pat cio ntn_ xai- sq0 -us AAAA'.split(' ')
const shortWord = fc
  .tuple(fc.constantFrom('', ...beginnings), fc.stringMatching(/^[A-Za-z0-9_./~-]{0,15}$/))
  .map(([beginning, rest]) => `${beginning}${rest}`.slice(0, 15))

test('the detectors of known tokens, of encoded secrets and of secrets in tables find none in a word of at most 15 characters', () => {
  fc.assert(
    fc.property(shortWord, (word) => {
      expect(findKnownTokens(word)).toEqual([])
      expect(findEncoded(word, () => true)).toEqual([])
      expect(findTableSecrets(word, 'value.txt')).toEqual([])
    }),
    { numRuns: volumeOf(5000) },
  )
})

test('the shortest known form of a token, of 16 characters, is found', () => {
  const token = 'LTAI4Fo9aB3dE7gH'
  expect(token).toHaveLength(16)
  expect(findSecretsByRules(token, { path: 'value.txt' })).toMatchObject([{ layer: 'shapes', start: 0, end: 16 }])
})

test('a short secret is found beside a sign of one, such as "password="', () => {
  expect(findSecretsByRules('password=x9K2pQ7', { path: 'value.txt' })).not.toEqual([])
  expect(findSecretsByRules('--password x9K2pQ7', { path: 'value.txt' })).not.toEqual([])
})
