import { describe, test } from 'vitest'
import { createMetricsRegistry } from '../../src/core/log.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { hasPrometheus, noPrometheus, openMetrics, startPrometheus } from '../support/prometheus.ts'
import { standIn } from '../support/prometheus-stand-in.ts'
import { requires } from '../support/require.ts'

const type = 'application/json'
const pages = { alerts: { mimeType: type }, rules: { mimeType: type }, targets: { mimeType: type } }
const missing = ['series', 'series/', 'series/Up', 'alert', 'series/up/x', 'series/U__up', 'series/U____2F_']

describeProvider({ describe, test }, 'the provider metrics over a stand-in for Prometheus', async () => {
  const api = await standIn({
    metrics: {
      up: { type: 'gauge', help: 'Whether it is up.' },
      'a:b': {},
      'a/b': {},
      '..': {},
      U__up: {},
      'http.server.duration': { unit: 'seconds' },
      '日本語 𠮷': {},
      ｱ: {},
      'e\u0301': {},
    },
  })
  return {
    provider: await metrics({ url: api.url }),
    expectation: {
      entries: {
        ...pages,
        'series/up': { mimeType: type },
        'series/a:b': {},
        'series/U__a_2f_b': {},
        'series/U___2e__2e_': {},
        'series/U__U____up': {},
        'series/http.server.duration': {},
        'series/日本語 𠮷': {},
        'series/ｱ': {},
        'series/e\u0301': {},
      },
      missing: [...missing, 'series/\u00e9', 'series/U__a_2F_b'],
    },
    dispose: api.close,
  }
})

describeProvider({ describe, test }, 'the provider metrics over its own process', async () => {
  const measurements = createMetricsRegistry()
  measurements.add(() => [
    { name: 'a_total', type: 'counter', help: 'Some.', samples: [{ labels: { mount: '1' }, value: 3 }] },
    { name: 'b_bytes', type: 'gauge', help: 'Others.', samples: [{ value: 4 }] },
  ])
  return {
    provider: await metrics({ source: 'self', measurements }),
    expectation: { entries: { 'series/a_total': {}, 'series/b_bytes': {} }, missing: [...missing, 'alerts', 'rules'] },
  }
})

requires(
  'prometheus',
  hasPrometheus,
  noPrometheus,
)('with a real Prometheus,', () => {
  describeProvider({ describe, test }, 'the provider metrics over Prometheus', async () => {
    const now = Math.floor(Date.now() / 1000)
    const labels = { instance: 'web-1:9100' }
    const history = openMetrics(
      [
        {
          name: 'load_ratio',
          type: 'gauge',
          help: 'Load.',
          unit: 'ratio',
          series: [{ labels, at: (_, index) => index }],
        },
        { name: 'requests_total', type: 'counter', series: [{ labels, at: (_, index) => index }] },
      ],
      now - 600,
      now,
      15,
    )
    const prometheus = await startPrometheus({ history })
    return {
      provider: await metrics({ url: prometheus.url }),
      expectation: { entries: { ...pages, 'series/load_ratio': {}, 'series/requests_total': {} }, missing },
      dispose: prometheus.remove,
    }
  })
})
