import { account, type KeptFile } from './drive-table.ts'

type Test = (file: KeptFile) => boolean

/**
 * Parses the supported queries of `files.list`: `'ID' in parents`, `name = '…'`, `trashed = …`, `sharedWithMe = …`, `'…' in
 * owners`, with `and`, `or`, `not` and parentheses. Throws for all others, as Drive refuses malformed ones.
 */
export function parseQuery(q: string): Test {
  const tokens = [...q.matchAll(/\s*(?:'((?:[^'\\]|\\.)*)'|([A-Za-z]+)|(!=|[()=]))|\s*(\S)/gy)].map(
    ([, text, word, sign, other]) => {
      if (other !== undefined) throw new Error('syntax')
      return text === undefined ? { word: word ?? sign ?? '' } : { text: text.replace(/\\(.)/g, '$1') }
    },
  )
  let at = 0
  const next = () => tokens[at++]
  const isNext = (word: string) => tokens[at]?.word === word && at++ >= 0
  const expect = (word: string) => {
    if (!isNext(word)) throw new Error('syntax')
  }

  const either = (): Test => {
    const tests = [both()]
    while (isNext('or')) tests.push(both())
    return (file) => tests.some((test) => test(file))
  }
  const both = (): Test => {
    const tests = [one()]
    while (isNext('and')) tests.push(one())
    return (file) => tests.every((test) => test(file))
  }
  const one = (): Test => {
    if (isNext('not')) {
      const test = one()
      return (file) => !test(file)
    }
    if (isNext('(')) {
      const test = either()
      expect(')')
      return test
    }
    const token = next()
    if (token?.text !== undefined) return membership(token.text)
    return comparison(token?.word)
  }
  const membership = (value: string): Test => {
    expect('in')
    const where = next()?.word
    if (where === 'parents') return ({ parents }) => parents?.includes(value) === true
    if (where === 'owners') return ({ driveId }) => driveId === undefined && value === account
    throw new Error('syntax')
  }
  const comparison = (field: string | undefined): Test => {
    expect('=')
    const { text, word } = next() ?? {}
    if (field === 'name' && text !== undefined) return ({ name }) => name === text
    const flag = word === 'true' ? true : word === 'false' ? false : undefined
    if (flag === undefined) throw new Error('syntax')
    if (field === 'trashed') return ({ trashed }) => trashed === flag
    if (field === 'sharedWithMe') return ({ sharedWithMeTime }) => (sharedWithMeTime !== undefined) === flag
    throw new Error('syntax')
  }

  const test = either()
  if (at !== tokens.length) throw new Error('syntax')
  return test
}

/**
 * Selects the fields of a partial response, such as `nextPageToken,files(id,owners(emailAddress))`. Throws for a malformed
 * selection.
 */
export function project(value: unknown, fields: string): unknown {
  let at = 0
  const parse = (): Map<string, Map<string, unknown> | undefined> => {
    const found = new Map()
    for (;;) {
      const [name] = /^[A-Za-z0-9*]+/.exec(fields.slice(at)) ?? []
      if (name === undefined) throw new Error('fields')
      at += name.length
      let inner: unknown
      if (fields[at] === '(') {
        at++
        inner = parse()
        if (fields[at++] !== ')') throw new Error('fields')
      }
      found.set(name, inner)
      if (fields[at] !== ',') return found
      at++
    }
  }
  const wanted = parse()
  if (at !== fields.length) throw new Error('fields')
  return pick(value, wanted)
}

function pick(value: unknown, wanted: Map<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item) => pick(item, wanted))
  if (typeof value !== 'object' || value === null || wanted.has('*')) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (!wanted.has(name)) return []
      const inner = wanted.get(name)
      return [[name, inner instanceof Map ? pick(member, inner) : member]]
    }),
  )
}
