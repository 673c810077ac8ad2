import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openMount } from '../../src/config/open-mount.ts'
import { planConfig } from '../../src/config/plan.ts'
import type { Catalog } from '../../src/core/catalog.ts'
import { createMetricsRegistry } from '../../src/core/log.ts'
import { checkProvider } from '../../src/testing/index.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { type StandIn, standIn } from '../support/prometheus-stand-in.ts'

let folder: Folder
let api: StandIn
const opened: Catalog[] = []
beforeEach(async () => {
  folder = createFolder()
  api = await standIn({ metrics: { up: { type: 'gauge' } } })
})
afterEach(async () => {
  for (const catalog of opened.splice(0)) await catalog.close()
  await api.close()
  folder.remove()
})

async function load(mount: Readonly<Record<string, unknown>>, env: Readonly<Record<string, string>> = {}) {
  const store = { sqlite: 'store.sqlite' }
  folder.write({
    'hikidashi.json': JSON.stringify({ mounts: { 'metrics://m': { provider: 'metrics', ...mount } }, store }),
  })
  return loadConfig(folder.at('hikidashi.json'), { env })
}

async function problemsOf(mount: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
  const loaded = await load(mount)
  return 'problems' in loaded ? loaded.problems.map(({ key, message, fix }) => `${key}: ${message} ${fix}`) : []
}

async function configOf(mount: Readonly<Record<string, unknown>>) {
  const loaded = await load(mount)
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
  return loaded.config
}

describe('a metrics mount of a configuration', () => {
  test.each([
    [{}, /url: The key is missing. Add it: the address of Prometheus/],
    [{ url: 'prometheus:9090' }, /not the address of an HTTP API/],
    [{ url: 'http://u:hunter2@x' }, /not the address of an HTTP API/],
    [{ url: 'http://x', bearer: 'hunter2' }, /literal secret/],
    [
      { url: 'http://x', bearer: { env: 'A' }, basic: { user: 'u', password: { env: 'B' } } },
      /two kinds of credentials/,
    ],
    [{ source: 'self', keep: '1d' }, /keep/],
    [{ source: 'self', url: 'http://x' }, /measures itself/],
    [{ source: 'self', allow: ['up'] }, /allow: With "source": "self" the server measures itself/],
    [{ url: 'http://x', allow: ['a/b'] }, /No metric has a slash in its path/],
    [{ url: 'http://x', allow: [] }, /allow/],
    [{ source: 'other' }, /There is no value "other"/],
    [{ url: 'http://x', interval: '1ms' }, /from "100ms" to "1d"/],
    [{ url: 'http://x', maxPoints: 5 }, /at least 16/],
  ])('with %j is refused with advice', async (mount, words) => {
    const problems = await problemsOf(mount)
    expect(problems.join('\n')).toMatch(words)
    expect(problems.join('\n')).not.toContain('hunter2')
  })

  test('sends its credentials, and registers them as known secrets', async () => {
    folder.write({ token: 'the-token-of-the-mount\n' })
    const config = await configOf({ url: api.url, bearer: { file: 'token' } })
    expect(config.secrets).toContain('the-token-of-the-mount')
    const catalog = await openCatalog(planConfig(config), { log: () => {} })
    opened.push(catalog)
    await catalog.view({ id: 'x', roles: [] }).read('metrics://m/series/up')
    expect(api.asked.at(-1)?.headers.authorization).toBe('Bearer the-token-of-the-mount')
  })

  test('serves only the metrics that "allow" names', async () => {
    api.set({ metrics: { up: {}, secret_total: {} } })
    const catalog = await openCatalog(planConfig(await configOf({ url: api.url, allow: ['u*'] })), { log: () => {} })
    opened.push(catalog)
    const view = catalog.view({ id: 'x', roles: [] })
    await view.read('metrics://m/series/up')
    await expect(view.read('metrics://m/series/secret_total')).rejects.toMatchObject({ kind: 'not-found' })
    await expect(view.read('metrics://m/query?query=secret_total')).rejects.toMatchObject({ kind: 'invalid' })
    expect(api.asked.filter(({ fields }) => (fields.get('query') ?? '').includes('secret'))).toEqual([])
  })

  test('sends no credentials over http beyond this machine, unless "insecure" is set', async () => {
    folder.write({ token: 'the-token' })
    const open = async (mount: Readonly<Record<string, unknown>>) => {
      const [planned] = planConfig(await configOf({ bearer: { file: 'token' }, ...mount }))
      if (planned === undefined) throw new Error('nothing is planned')
      const { provider } = await openMount(planned, { log: () => {} })
      await provider.close?.()
    }
    await expect(open({ url: 'http://metrics.example.org:9090' })).rejects.toThrow(/without encryption/)
    for (const mount of [
      { url: 'http://metrics.example.org', insecure: true },
      { url: 'https://metrics.example.org' },
      { url: 'http://[::1]:9090' },
      { url: 'http://localhost' },
    ])
      await open(mount)
    await expect(open({ url: 'https://x', bearer: { env: 'HIKIDASHI_NOT_SET' } })).rejects.toThrow(
      /HIKIDASHI_NOT_SET is not set/,
    )
  })

  test('passes the checks that every provider must pass', async () => {
    for (const mount of [{ url: api.url }, { source: 'self' }]) {
      const [planned] = planConfig(await configOf(mount))
      if (planned === undefined) throw new Error('nothing is planned')
      const { provider } = await openMount(planned, { log: () => {} })
      const { problems, examined } = await checkProvider(provider, {}, { samples: 6, timeoutMs: 60_000 })
      await provider.close?.()
      expect(problems).toEqual([])
      expect(examined).toBeGreaterThan(3)
    }
  })

  test('of this server has what the server measures, also the numbers of answers of its mounts', async () => {
    const measurements = createMetricsRegistry()
    measurements.add(() => [{ name: 'own_total', type: 'counter', help: 'Own.', samples: [{ value: 3 }] }])
    const catalog = await openCatalog(planConfig(await configOf({ source: 'self', interval: '100ms' })), {
      log: () => {},
      measurements,
    })
    opened.push(catalog)
    const view = catalog.view({ id: 'x', roles: [] })
    const read = async (path: string) => JSON.stringify((await view.read(`metrics://m/${path}`)).contents)
    expect(await read('series/own_total')).toContain('own_total (counter): 1 series')
    await expect
      .poll(() => read('series/hikidashi_source_answers_total').catch(() => ''), { timeout: 30_000 })
      .toMatch(/provider\\*":\\*"metrics/)
  })
})
