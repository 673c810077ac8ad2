import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AccessRule, compileAccess, compileVerdict } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { notFound, ResourceError } from '../../src/core/errors.ts'
import { compileGlobs, compileReach } from '../../src/core/glob.ts'
import type { CompletionRequest, Principal, Provider } from '../../src/core/provider.ts'
import type { Page, View, ViewChange } from '../../src/core/view.ts'
import { runs } from '../attack/harness/arbitraries.ts'
import { live, until } from '../support/live.ts'

const address = 'mem://r'
const segment = fc.constantFrom('a', 'b', 'c', 'key', 'x.key', '日本')
const path = fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/'))
const paths = fc.uniqueArray(path, { minLength: 1, maxLength: 14 })
const globs = [
  'a/**',
  '**/*.key',
  '*.key',
  '/b',
  'b/',
  '*',
  '**',
  '{a,c}/*',
  'a/*/c',
  '**/b/**',
  '日本/**',
  '[ab]',
  '?',
]
const glob = fc.constantFrom(...globs)
const roles = fc.uniqueArray(fc.constantFrom('r', 's', '*'), { minLength: 1, maxLength: 2 })
const rule: fc.Arbitrary<AccessRule> = fc
  .record({
    allow: fc.option(roles, { nil: undefined }),
    deny: fc.option(roles, { nil: undefined }),
    match: fc.option(fc.oneof(glob, fc.array(glob, { minLength: 1, maxLength: 2 })), { nil: undefined }),
  })
  .filter(({ allow, deny }) => allow !== undefined || deny !== undefined)
const rules = fc.array(rule, { minLength: 1, maxLength: 4 })
const principal: Principal = { id: 'p', roles: ['r'] }

describe('access rules', () => {
  test('hide every resource if there are none', () => {
    expect(compileAccess([])({ id: 'x', roles: ['admin'] }, 'a')).toBe(false)
    expect(compileAccess([]).reach?.({ id: 'x', roles: ['admin'] }, '')).toBe('none')
  })

  test('state which rule decided', () => {
    const judge = compileVerdict([
      { allow: ['r'], match: 'a/**' },
      { allow: ['r', 's'] },
      { deny: ['*'], match: '**/*.key' },
    ])
    expect(judge(principal, 'a/b')).toEqual({ allowed: true, rule: 0 })
    expect(judge(principal, 'b')).toEqual({ allowed: true, rule: 1 })
    expect(judge(principal, 'a/x.key')).toEqual({ allowed: false, rule: 2 })
    expect(judge({ id: 'x', roles: [] }, 'a/b')).toEqual({ allowed: false, rule: undefined })
  })

  test('tell of a directory whether they match everything, something or nothing below it', () => {
    const judged = (pattern: string, directory: string) => compileReach([pattern])(directory)
    for (const [pattern, directory, reach] of [
      ['a/**', '', 'some'],
      ['a/**', 'a/', 'all'],
      ['a/**', 'a/b/', 'all'],
      ['a/**', 'b/', 'none'],
      ['a/', 'a/', 'all'],
      ['/a/', 'b/a/', 'none'],
      ['**', '', 'all'],
      ['*', '', 'all'],
      ['**/*', 'a/', 'all'],
      ['*.key', 'a/', 'some'],
      ['/a', 'a/', 'none'],
      ['**/b/**', 'a/b/', 'all'],
      ['a/*/c', 'a/b/', 'some'],
      ['a/*/c', 'a/b/c/', 'none'],
    ] as const)
      expect(judged(pattern, directory), `${pattern} below ${JSON.stringify(directory)}`).toBe(reach)
    expect(compileReach(['/a', 'b/**'])('b/')).toBe('all')
  })

  test('decide for a directory only what holds for every path in it', () => {
    fc.assert(
      fc.property(fc.array(glob, { minLength: 1, maxLength: 3 }), path, path, (patterns, directory, rest) => {
        const reach = compileReach(patterns)(`${directory}/`)
        const matches = compileGlobs(patterns)(`${directory}/${rest}`)
        expect(reach === 'some' || (reach === 'all') === matches).toBe(true)
      }),
      runs(2000),
    )
    fc.assert(
      fc.property(rules, path, path, (list, directory, rest) => {
        const access = compileAccess(list)
        const reach = access.reach?.(principal, `${directory}/`)
        expect(reach === 'some' || (reach === 'all') === access(principal, `${directory}/${rest}`)).toBe(true)
      }),
      runs(2000),
    )
  })
})

/** Everything that a view answers of these paths, errors included. */
async function everything(view: View, asked: readonly string[]): Promise<unknown> {
  const outcome = async (work: () => Promise<unknown>) => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ResourceError)) throw error
      // Of what is not there, the rest stays in the log.
      return error.kind === 'not-found'
        ? error.kind
        : { kind: error.kind, message: error.message, detail: error.detail }
    }
  }
  const allPages = async <T>(page: (cursor?: string) => Promise<Page<T>>) => {
    const pages: Page<T>[] = []
    do pages.push(await page(pages.at(-1)?.nextCursor))
    while (pages.at(-1)?.nextCursor !== undefined && pages.length < 100)
    return pages
  }
  const query = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor })
  const found: unknown[] = [
    await view.mounts(),
    await allPages((cursor) => view.list(query(cursor))),
    await allPages((cursor) => view.templates(query(cursor))),
  ]
  for (const path of ['', ...asked]) {
    const uri = `${address}/${path}`
    for (const form of [uri, `${uri}/`.replace('//', '/').replace('mem:/', 'mem://'), `${uri}?lines=1`, `${uri}?no=1`])
      found.push([form, await outcome(() => view.read(form))])
    found.push([uri, await outcome(() => allPages((cursor) => view.directory({ uri, ...query(cursor) })))])
    for (const [uriTemplate, name, filled] of [
      [`${address}/{+path}`, 'path', []],
      [`${address}/{+path}{?lines}`, 'lines', [['path', path]]],
      [`${address}/{first}/{+path}`, 'first', []],
      [`${address}/{first}/{+path}`, 'path', [['first', path.split('/')[0] ?? '']]],
    ] as const)
      for (const value of ['', path, `${path}/`, path.slice(0, 1)]) {
        const request = { uriTemplate, argument: { name, value }, arguments: new Map(filled) }
        found.push([uriTemplate, name, value, await outcome(() => view.complete(request))])
      }
  }
  return found
}

const templates = ['{+path}', '{+path}{?lines}', '{first}/{+path}'].map((template) => ({ template, name: template }))

/** Completes as a source does that knows its own paths, directories with a `/` at the end. */
function completing(paths: readonly string[]) {
  return async ({ template, argument, arguments: filled }: CompletionRequest) => {
    const first = filled.get('first')
    const head = template.startsWith('{first}') && argument.name === 'path' ? `${first}/` : ''
    if (argument.name === 'lines') return { values: paths.includes(filled.get('path') ?? '') ? ['1-9'] : [] }
    const names = paths.filter((path) => path.startsWith(head)).map((path) => path.slice(head.length))
    const values = argument.name === 'first' ? names.flatMap((path) => path.split('/').slice(0, -1).slice(0, 1)) : names
    return { values: [...new Set(values)].filter((value) => value.startsWith(argument.value)) }
  }
}

describe('a view of a mount with rules', () => {
  for (const completes of [false, true])
    test(`equals the view of a mount that has only the allowed paths, with completion ${completes ? 'by the source' : 'from the tree'}`, async () => {
      await fc.assert(
        fc.asyncProperty(paths, rules, async (all, list) => {
          const access = compileAccess(list)
          const allowed = all.filter((path) => access(principal, path))
          const viewOf = (present: readonly string[]) => {
            const provider = {
              ...live(Object.fromEntries(present.map((path) => [path, { text: `of ${path}`, size: path.length }]))),
              templates: async () => templates,
              ...(completes ? { complete: completing(present) } : {}),
            }
            const secret = Buffer.alloc(32, 1)
            const pages = { first: 2, most: 3 }
            return createCatalog({ mounts: [{ address, provider, access }], secret, pages }).view(principal)
          }
          const asked = [...all, 'a/none', 'none', 'b', '日本']
          expect(await everything(viewOf(all), asked)).toEqual(await everything(viewOf(allowed), asked))
        }),
        runs(completes ? 60 : 120),
      )
    })

  test('has no directory whose content is all denied, though its source has it, but has empty directories', async () => {
    const provider: Provider = {
      ...live({ 'open/x': { text: '' }, 'secret/x': { text: '' } }),
      stat: async (path) => {
        if (['open/', 'empty/', 'secret/', 'secret/below/'].includes(path)) return { path, mimeType: 'inode/directory' }
        throw notFound()
      },
    }
    const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'secret/**' }])
    const view = createCatalog({ mounts: [{ address, provider, access }] }).view(principal)
    const outcome = (path: string) =>
      Promise.allSettled([view.read(`${address}/${path}`), view.directory({ uri: `${address}/${path}` })]).then((all) =>
        all.map((one) => (one.status === 'fulfilled' ? 'there' : one.reason.kind)),
      )
    for (const path of ['open/', 'empty/']) expect(await outcome(path), path).toEqual(['there', 'there'])
    for (const path of ['secret/', 'secret', 'secret/below/', 'secret/x', 'absent/', 'absent'])
      expect(await outcome(path), path).toEqual(['not-found', 'not-found'])
  })

  test('is notified of the same changes, whether or not denied resources exist and change', async () => {
    await fc.assert(
      fc.asyncProperty(paths, rules, async (all, given) => {
        const list = [...given.filter(({ deny }) => deny === undefined), { allow: ['*'], match: '/sentinel' }]
        const denying = given
          .filter(({ deny }) => deny !== undefined)
          .map((rule) => ({ ...rule, match: ['a/**', '*.key'] }))
        const access = compileAccess([...list, ...denying])
        const allowed = all.filter((path) => access(principal, path))
        const uris = [...all, 'a/none', 'none/', 'a/', 'b/', 'c/'].map((path) => `${address}/${path}`)
        const hear = async (present: readonly string[]) => {
          const provider = live(Object.fromEntries([...present, 'sentinel'].map((path) => [path, ''])))
          const catalog = createCatalog({ mounts: [{ address, provider, access }] })
          const heard: ViewChange[] = []
          const subscription = catalog.view(principal).subscribe?.((change) => heard.push(change))
          const honoured = await subscription?.add([...uris, `${address}/sentinel`])
          await subscription?.addList()
          for (const path of present) provider.set(path, undefined)
          provider.tell({ path: 'sentinel' })
          const told = () => heard.flatMap((change) => change.uris)
          await until(() => told().includes(`${address}/sentinel`))
          await catalog.close()
          return { honoured, told: new Set(told()), listed: heard.some(({ listed }) => listed) }
        }
        const [whole, part] = await Promise.all([hear(all), hear(allowed)])
        expect(whole.told).toEqual(part.told)
        expect(whole.listed).toBe(part.listed)
        for (const path of all)
          if (!access(principal, path) && !allowed.some((other) => other.startsWith(`${path}/`)))
            expect(whole.told).not.toContain(`${address}/${path}`)
      }),
      runs(25),
    )
  })

  test('gets no notification for a directory in which only denied paths change', async () => {
    const provider = live({ 'docs/open': '', 'docs/secret/x': '', 'docs/x.key': '', sentinel: '' })
    const access = compileAccess([{ allow: ['r'] }, { deny: ['r'], match: ['docs/secret/**', '*.key'] }])
    const catalog = createCatalog({ mounts: [{ address, provider, access }] })
    const heard: ViewChange[] = []
    const subscription = catalog.view(principal).subscribe?.((change) => heard.push(change))
    await subscription?.add([`${address}/docs/`, `${address}/sentinel`])
    await subscription?.addList()
    provider.set('docs/secret/x', undefined)
    provider.set('docs/new.key', { text: '' })
    provider.tell({ path: 'docs/secret/', listed: true })
    provider.tell({ path: 'sentinel' })
    await until(() => heard.length > 0)
    expect(heard).toEqual([{ uris: [`${address}/sentinel`], listed: false }])
    provider.tell({ path: 'docs/', listed: true })
    await until(() => heard.length > 1)
    expect(heard[1]).toEqual({ uris: [`${address}/docs/`], listed: true })
    await catalog.close()
  })
})
