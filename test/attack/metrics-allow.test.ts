import { afterEach, describe, expect, test } from 'vitest'
import { type Catalog, createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { metricTemplates } from '../../src/providers/metrics/complete.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { type StandIn, type StandInOptions, standIn } from '../support/prometheus-stand-in.ts'

const opened: { readonly catalog: Catalog; readonly api: StandIn }[] = []
afterEach(async () => {
  for (const { catalog, api } of opened.splice(0)) {
    await catalog.close()
    await api.close()
  }
})

const known = { up: {}, http_requests_total: {}, canary_total: { help: 'canary' }, 'canary/up': {}, 'up.canary': {} }

/** A mount that may serve `up` and `http_*`, of a Prometheus that knows more. */
async function open(given: StandInOptions = {}) {
  const api = await standIn({ metrics: known, ...given })
  const provider = await metrics({ url: api.url, allow: ['up', 'http_*'] })
  const catalog = createCatalog({ mounts: [{ address: 'metrics://m', provider }] })
  opened.push({ catalog, api })
  const view = catalog.view({ id: 'x', roles: [] })
  const read = async (path: string) => {
    const [content] = (await view.read(`metrics://m/${path}`)).contents
    return content !== undefined && 'text' in content ? content.text : ''
  }
  const failureOf = async (path: string) => {
    const error = await read(path).then(
      (text) => ({ text }),
      (thrown: unknown) => thrown,
    )
    return JSON.stringify({ text: String(error), error }).replaceAll(path, 'PATH')
  }
  const ask = (query: string, params: Readonly<Record<string, string>> = {}) =>
    provider.read({ path: 'query', params: new Map(Object.entries({ query, ...params })) }, context())
  return { api, provider, read, ask, failureOf }
}

const context = () => ({ principal: { id: 'x', roles: [] }, signal: new AbortController().signal })

async function listed(provider: Provider): Promise<readonly string[]> {
  const paths: string[] = []
  for await (const { path } of provider.list({}, context())) paths.push(path)
  return paths
}

const queriesTo = ({ asked }: StandIn) =>
  asked.filter(({ path }) => path.startsWith('query')).map(({ fields }) => fields.get('query') ?? '')

describe('a mount with an allow-list of metrics', () => {
  test('lists and completes only the allowed metrics, and shows them', async () => {
    const { provider, read, api } = await open()
    expect(await listed(provider)).toEqual(['series/http_requests_total', 'series/up'])
    const complete = async (template: string | undefined, name: string, value: string, metric = '') => {
      const request = { template: template ?? '', argument: { name, value }, arguments: new Map([['metric', metric]]) }
      return (await provider.complete?.(request, context()))?.values
    }
    const [series, query] = ['series/', 'query'].map(
      (start) => metricTemplates.find(({ template }) => template.startsWith(start))?.template,
    )
    expect(await complete(series, 'metric', '')).toEqual(['http_requests_total', 'up'])
    expect(await complete(query, 'query', 'sum(')).not.toContain('sum(canary_total')
    expect(await complete(query, 'query', 'can')).toEqual([])
    expect(await complete(series, 'match', '{jo', 'up')).toEqual(['{job="'])
    expect(await complete(series, 'match', '{jo', 'canary_total')).toEqual([])
    expect(await complete(series, 'match', '{job="', 'canary_total')).toEqual([])
    expect(await read('series/up')).toContain('up')
    expect(await read('series/up?as=chart')).toContain('<svg')
    const selected = api.asked.filter(({ path }) => path === 'labels' || path === 'label/job/values')
    expect(selected.map(({ fields }) => fields.get('match[]'))).toEqual(['up'])
    expect(JSON.stringify(api.asked)).not.toContain('canary')
  })

  test('completes no name of another metric as a value of a label', async () => {
    const { provider } = await open({ data: { 'label/__name__/values': ['up', 'canary_total'] } })
    const template = metricTemplates.find(({ template }) => template.startsWith('series/'))?.template ?? ''
    const argument = { name: 'match', value: 'job="x",__name__="' }
    const completed = await provider.complete?.(
      { template, argument, arguments: new Map([['metric', 'up']]) },
      context(),
    )
    expect(JSON.stringify(completed)).not.toContain('canary')
  })

  test('answers "not found" for any other metric, as for an absent one, without a query to Prometheus', async () => {
    const { api, failureOf } = await open()
    for (const suffix of ['', '?as=chart', '?as=csv', '?match={job="x"}']) {
      const absent = await failureOf(`series/absent_total${suffix}`)
      expect(absent).toContain('not-found')
      for (const segment of ['canary_total', 'U__canary_2f_up', 'up.canary'])
        expect((await failureOf(`series/${segment}${suffix}`)).replaceAll(segment, 'absent_total')).toBe(
          absent.replaceAll(segment, 'absent_total'),
        )
    }
    for (const page of ['alerts', 'rules', 'targets']) expect(await failureOf(page)).toContain('not-found')
    expect(queriesTo(api)).toEqual([])
    expect(api.asked.map(({ path }) => path).filter((path) => /alerts|rules|targets/.test(path))).toEqual([])
  })

  test.each([
    'canary_total',
    'up + canary_total',
    'up or {__name__="canary_total"}',
    '{"canary_total"}',
    '{__name__=~"up|canary.*"}',
    '{__name__!="up"}',
    '{job="x"}',
    'up{__name__="canary_total"}',
    '{"up","canary_total"}',
    '{"canary/up"}',
    'up # \n or canary_total',
    'up # \r or canary_total',
    'up{x="\\\\"} or canary_total # "}',
    'up{x=`\\`} or canary_total{x=`"`}',
    "up{x='\"'} or canary_total{x='\"'}",
    'sum by (up) (canary_total)',
    'label_replace(canary_total, "__name__", "up", "", "")',
    'max_over_time(rate(canary_total[5m])[1h:5m])',
    'up * on(job) group_left(x) canary_total',
    'absent(canary_total)',
    'info(up)',
    'count({"__\\x6eame__"="canary_total"})',
    'http_requests_total:canary / canary:up',
  ])('refuses the query %j before anything is sent', async (query) => {
    const { api, ask } = await open()
    for (const params of [{}, { start: '-1h' }, { as: 'chart' }, { as: 'csv' }])
      await expect(ask(query, params)).rejects.toMatchObject({
        kind: 'invalid',
        detail: { reason: 'parameter', parameter: 'query' },
      })
    expect(api.asked).toEqual([])
  })

  test('refuses a query for a hidden metric in the same words as one for an absent metric', async () => {
    const { failureOf } = await open()
    expect((await failureOf('query?query=absent_total')).replaceAll('absent_total', 'canary_total')).toBe(
      await failureOf('query?query=canary_total'),
    )
  })

  test('sends a query in normalized form: without comments, with one kind of quotes', async () => {
    const { api, ask } = await open()
    const query = 'sum by (job) (rate(http_requests_total{x=`a"`}[5m])) # \r / {"up"} # canary'
    await ask(query)
    expect(queriesTo(api)).toEqual(['sum by ( job ) ( rate ( http_requests_total { x = "a\\"" } [ 5m ] ) ) / { "up" }'])
  })

  test('refuses a malformed glob, and a glob with a slash', async () => {
    await expect(metrics({ url: 'http://127.0.0.1:9', allow: ['a/b'] })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(metrics({ url: 'http://127.0.0.1:9', allow: ['[a'] })).rejects.toMatchObject({ kind: 'invalid' })
  })
})
