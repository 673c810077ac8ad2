import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { type LoadResult, loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import { formatConfigProblem } from '../../src/config/problem.ts'
import { createWriteAccess, isWritable, postPath } from '../../src/config/writing.ts'
import { ResourceError } from '../../src/core/errors.ts'
import { analysisOf } from '../support/results.ts'

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-config-results-'))
mkdirSync(join(folder, 'served'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const load = (config: unknown, env: Readonly<Record<string, string>> = {}): Promise<LoadResult> => {
  const file = join(folder, 'hikidashi.json')
  writeFileSync(file, JSON.stringify(config))
  return loadConfig(file, { env: { XDG_STATE_HOME: join(folder, 'state'), ...env } })
}

const problemsOf = async (config: unknown, env?: Readonly<Record<string, string>>) => {
  const loaded = await load(config, env)
  if (!('problems' in loaded)) throw new Error('nothing is wrong with it')
  return loaded.problems.map((problem) => formatConfigProblem(problem).replace(/^[^:]*:[\d:]* /, ''))
}

const results = { provider: 'results' }

describe('the store of a configuration', () => {
  test('is a file in the state folder by default, else the named file or database', async () => {
    const loaded = await load({ mounts: { 'a://b': results } })
    const { store } = 'config' in loaded ? loaded.config : { store: undefined }
    const start = join(folder, 'state', 'hikidashi', 'hikidashi-config-results-')
    expect(store).toEqual({
      sqlite: { file: expect.stringMatching(/-[0-9a-f]{8}\/store\.sqlite$/), orMemory: true },
    })
    expect(JSON.stringify(store)).toContain(start)
    const named = await load({ mounts: { 'a://b': results }, store: { sqlite: 'own.sqlite' } })
    expect(named).toMatchObject({ config: { store: { sqlite: { file: join(folder, 'own.sqlite') } } } })
    const url = 'postgres://u:a-long-password@127.0.0.1:1/d'
    const shared = await load(
      { mounts: { 'a://b': results }, store: { postgres: { env: 'URL' }, schema: 's' } },
      { URL: url },
    )
    expect(shared).toMatchObject({
      config: { store: { postgres: { connectionString: url, schema: 's' } }, secrets: [url] },
    })
  })

  test.each<readonly [unknown, RegExp]>([
    [
      { sqlite: 'served/s.sqlite' },
      /^store\.sqlite: The store .* lies in the folder that the mount "docs:\/\/d" serves\./,
    ],
    [{ postgres: { env: 'NOT_SET' } }, /^store\.postgres: The environment variable NOT_SET is not set\./],
    [{ postgres: 'postgres://u:p@h/d' }, /^store\.postgres: This is a literal secret\./],
    [{ sqlite: 'a', postgres: { env: 'URL' } }, /^store: There are two stores\./],
    [{ schema: 's' }, /^store: Only PostgreSQL has a schema/],
    [{ postgres: { env: 'URL' }, schema: 'a"b' }, /^store\.schema: This is not the name of a schema\./],
    [{ file: 'x' }, /^store\.file: This key is unknown\./],
  ])('with %j is refused', async (store, message) => {
    const mounts = { 'a://b': results, 'docs://d': { provider: 'files', root: 'served' } }
    const problems = await problemsOf({ mounts, store }, { URL: 'postgres://u:p@h/d' })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(message)
  })
})

describe('a results mount of a configuration', () => {
  test.each<readonly [object, RegExp]>([
    [{ ttl: '10ms' }, /too short\. It must be at least "1s"/],
    [{ ttl: 'for ever' }, /This is not a duration/],
    [{ keep: { records: 0 } }, /less than 1/],
    [{ maxBytes: '9MiB' }, /It must be at most "8MiB"/],
    [{ write: [] }, /Name the roles that may write/],
    [{ language: 'not a language' }, /This is not a language/],
    [{ poll: '10s' }, /./],
  ])('with %j is refused', async (options, message) => {
    const config = { mounts: { 'a://b': { ...results, ...options } }, store: { sqlite: 'own.sqlite' } }
    if ('poll' in options) {
      const loaded = await load(config)
      if (!('config' in loaded)) throw new Error('it was refused before')
      const { store } = loaded.config
      await expect(openCatalog(planConfig(loaded.config), { log: () => {}, store })).rejects.toThrow(/Remove "poll"/)
    } else expect((await problemsOf(config))[0]).toMatch(message)
  })

  test('must not have the same URL for posts as another mount', async () => {
    const write = { ...results, write: ['editor'] }
    expect((await problemsOf({ mounts: { 'a://x': write, 'b://x': write } }))[0]).toMatch(
      /^mounts\["b:\/\/x"\]\.write: Clients would post results for this mount to \/results\/x, which is also the path for "a:\/\/x"\./,
    )
    expect(await load({ mounts: { 'a://x': write, 'b://x': results } })).toHaveProperty('config')
    expect(postPath('wallbounce://team/project/')).toBe('/results/team/project')
    expect(postPath('file:///docs')).toBe('/results/docs')
  })

  test('is written by callers who have the role and may see it, and by nobody else', async () => {
    const own = {
      ...results,
      write: ['editor'],
      access: [
        { allow: ['editor'], deny: ['guest'] },
        { deny: ['editor'], match: 'results/secret*' },
      ],
    }
    const loaded = await load({
      mounts: { 'a://x': own, 'a://scoped': { ...results, write: ['*'], scopes: ['w'] }, 'a://none': results },
      store: { sqlite: 'writing.sqlite' },
    })
    if (!('config' in loaded)) throw new Error('it is refused')
    const { store } = loaded.config
    const catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store })
    try {
      const writing = createWriteAccess(catalog)
      const tools = (roles: readonly string[], scopes?: readonly string[]) =>
        writing?.tools({ id: 'p', roles, ...(scopes === undefined ? {} : { scopes }) }) ?? []
      const places = (roles: readonly string[], scopes: readonly string[]) =>
        ['/results/x', '/results/scoped', '/results/none'].filter(
          (path) => writing?.postingAt(path, { id: 'p', roles, scopes }) !== undefined,
        )
      expect(places(['editor'], [])).toEqual(['/results/x'])
      expect(places(['editor', 'guest'], ['w'])).toEqual(['/results/scoped'])
      expect(places([], [])).toEqual([])
      expect(tools([], [])).toEqual([])
      const context = { principal: { id: 'p', roles: ['editor'], scopes: [] }, signal: new AbortController().signal }
      const [tool] = tools(['editor'], [])
      expect(await tool?.call({ ...analysisOf('seen') }, context)).toMatchObject({ structured: { status: 'created' } })
      // What one may not see, one may not put either.
      await expect(tool?.call({ ...analysisOf('x', { id: 'secret-1' }) }, context)).rejects.toMatchObject({
        kind: 'not-found',
      })
      await expect(tool?.call({ to: 'a://x', ...analysisOf('x') }, context)).rejects.toMatchObject({ kind: 'invalid' })
      // Nothing of an array with such an id is saved, and the answer is that of the id alone, whether or not a result has it.
      const posting = writing?.postingAt('/results/x', context.principal)
      const answerOf = async (value: unknown) => {
        const thrown = await posting?.post(value, context).catch((error: unknown) => error)
        return thrown instanceof ResourceError
          ? { kind: thrown.kind, message: thrown.message, detail: thrown.detail }
          : thrown
      }
      const first = analysisOf('first', { id: 'first' })
      const alone = await answerOf(analysisOf('x', { id: 'secret-1' }))
      expect(alone).toMatchObject({ kind: 'not-found' })
      expect(await answerOf([first, analysisOf('x', { id: 'secret-1' })])).toEqual(alone)
      await catalog.mounts.find(isWritable)?.provider.put(analysisOf('x', { id: 'secret-1' }))
      expect(await answerOf([first, analysisOf('x', { id: 'secret-1' })])).toEqual(alone)
      const read = () => catalog.view(context.principal).read('a://x/results/first')
      await expect(read()).rejects.toMatchObject({ kind: 'not-found' })
      expect(await answerOf([first, analysisOf('x', { id: 'other' })])).toMatchObject({ created: true })
      expect(await read()).toHaveProperty('contents')
    } finally {
      await catalog.close()
    }
  })

  test('that nobody may write to has no tools', async () => {
    const loaded = await load({ mounts: { 'a://none': results }, store: { sqlite: 'none.sqlite' } })
    if (!('config' in loaded)) throw new Error('it is refused')
    const { store } = loaded.config
    const catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store })
    expect(createWriteAccess(catalog)).toBeUndefined()
    await catalog.close()
  })
})
