import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatChart } from '../../src/providers/metrics/chart.ts'
import { formatCsv, formatJson } from '../../src/providers/metrics/data.ts'
import { escapeXml } from '../../src/providers/metrics/drawing.ts'
import { downsampleAnswer, type ShownAnswer } from '../../src/providers/metrics/shown.ts'
import type { Series } from '../../src/providers/metrics/source.ts'

const start = 1_795_255_200

function series(
  labels: Readonly<Record<string, string>>,
  values: readonly number[],
  times?: readonly number[],
): Series {
  return {
    labels: new Map(Object.entries(labels)),
    times: Float64Array.from(values, (_, i) => times?.[i] ?? start + i * 15),
    values: Float64Array.from(values),
  }
}

type Given = Partial<Omit<ShownAnswer, 'series'>> & { readonly inAll?: number }

function shown(all: readonly Series[], { inAll = 12_000, ...rest }: Given = {}): ShownAnswer {
  const total = rest.total ?? all.length
  const facts = { query: 'x', start, end: start + 3600, step: 15, notes: [], ...rest }
  const options = { step: facts.step, isCounter: facts.type === 'counter', perSeries: 240, inAll }
  return { ...facts, total, series: downsampleAnswer({ series: all, total, notes: [] }, options) }
}

interface Read {
  readonly summary: string
  readonly omitted?: unknown
  readonly sampling?: string
  readonly series: readonly {
    readonly labels: Record<string, string>
    readonly points: readonly (readonly [number, number | string])[]
    readonly gaps?: readonly unknown[]
    readonly gapsInAll?: number
    readonly pointsInAll?: number
    readonly summary?: Record<string, unknown>
  }[]
}
const json = (of: ShownAnswer) => JSON.parse(formatJson(of)) as Read

describe('series of metrics as JSON', () => {
  test('have their labels, their points, and a summary', () => {
    const both = [series({ job: 'a' }, [1, 3, 2]), series({ job: 'b' }, [5, 5, 5])]
    const read = json(shown(both, { unit: 'bytes', type: 'gauge' }))
    expect(read.summary).toBe(
      'x (gauge): 2 series from 2026-11-21T10:00:00Z to 2026-11-21T11:00:00Z, every 15s. ' +
        'job="a": last 2 B, min 1 B at 2026-11-21T10:00:00Z, max 3 B at 2026-11-21T10:00:15Z, rising. ' +
        'job="b": last 5 B, min 5 B at 2026-11-21T10:00:00Z, max 5 B at 2026-11-21T10:00:00Z, flat.',
    )
    expect(read.series[0]).toMatchObject({
      labels: { job: 'a' },
      points: [
        [start, 1],
        [start + 15, 3],
        [start + 30, 2],
      ],
      summary: { min: { value: 1 }, max: { value: 3 }, last: { value: 2, time: '2026-11-21T10:00:30Z' } },
    })
  })

  test('mark gaps, and values that JSON has no number for', () => {
    const times = [0, 15, 30, 900, 915].map((after) => start + after)
    const values = [1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2]
    const [one] = json(shown([series({}, values, times)])).series
    expect(one?.gaps).toEqual([{ from: '2026-11-21T10:00:30Z', to: '2026-11-21T10:15:00Z' }])
    expect(one?.points.map(([, value]) => value)).toEqual([1, 'NaN', '+Inf', '-Inf', 2])
  })

  test('name the longest of many gaps, and how many there are', () => {
    const times = Array.from({ length: 100 }, (_, i) => start + i * 60)
    const values = times.map(() => 1)
    const [one] = json(shown([series({}, values, times)])).series
    expect([one?.gaps?.length, one?.gapsInAll]).toEqual([20, 99])
  })

  test('of a counter state its increase, and the query that shows it', () => {
    const { summary } = json(shown([series({}, [0, 10, 20])], { type: 'counter' }))
    expect(summary).toContain('last 20, grew by 20, 0.6667 a second.')
    expect(summary).toContain('rate(…[5m])')
  })

  test('have fewer points if there are many, with the smallest and the largest value, and state how points were left out', () => {
    const values = Array.from({ length: 5000 }, (_, i) => (i === 1234 ? 99 : i === 4321 ? -99 : i % 7))
    const read = json(shown([series({}, values), series({ a: 'b' }, values)], { inAll: 200 }))
    expect(read.sampling).toContain('smallest and largest')
    for (const { points, pointsInAll } of read.series) {
      expect(points.length).toBeLessThanOrEqual(100)
      expect(points.length).toBeGreaterThan(80)
      expect(points.map(([, value]) => value)).toEqual(expect.arrayContaining([99, -99]))
      expect(pointsInAll).toBe(5000)
    }
  })

  test('state how many series were left out, and how to see them', () => {
    const read = json(shown([series({}, [1])], { total: 312 }))
    expect(read.omitted).toEqual({ series: 311, of: 312 })
    expect(read.summary).toContain('1 of 312 series')
    expect(read.summary).toContain('311 series are left out: select fewer by their labels')
  })

  test('state that there are no series, and have only the values for a single time', () => {
    const none = json(shown([]))
    expect(none.summary).toMatch(/^x: no samples from .* every 15s\. Ask for an earlier or longer time: \?start=-7d\.$/)
    expect(none.series).toEqual([])
    const moment = json(shown([series({ a: '1' }, [7])], { step: 0, end: start }))
    expect(moment.summary).toBe('x: 1 series at 2026-11-21T10:00:00Z. 7.')
    expect(moment.series).toEqual([{ labels: { a: '1' }, points: [[start, 7]] }])
  })

  test('have summaries of limited length, for any labels', () => {
    const many = Array.from({ length: 50 }, (_, i) => series({ label: `${i}${'x'.repeat(5000)}` }, [1]))
    const { summary } = json(shown(many))
    expect(summary.length).toBeLessThan(5000)
    expect(summary).toContain('40 more series are below.')
  })

  test('keep labels with names such as __proto__', () => {
    const labels = new Map([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
    const read = json(shown([{ ...series({}, [1]), labels }]))
    expect(Object.entries(read.series[0]?.labels ?? {})).toEqual([...labels])
  })
})

describe('series of metrics as CSV', () => {
  test('have a line for each point, and a column for each label', () => {
    const both = [series({ __name__: 'x', a: '1' }, [1, 2.5]), series({ __name__: 'x', b: 'y, "z"' }, [Number.NaN])]
    expect(formatCsv(shown(both)).split('\r\n')).toEqual([
      'time,value,a,b',
      '2026-11-21T10:00:00Z,1,1,',
      '2026-11-21T10:00:15Z,2.5,1,',
      '2026-11-21T10:00:00Z,NaN,,"y, ""z"""',
      '',
    ])
  })

  test('name the metric if there are several, and rename labels with names of columns', () => {
    const both = [series({ __name__: 'x', time: 'noon' }, [1]), series({ __name__: 'y' }, [2])]
    const [head, first] = formatCsv(shown(both)).split('\r\n')
    expect([head, first]).toEqual(['time,value,__name__,label_time', '2026-11-21T10:00:00Z,1,x,noon'])
  })

  test('hold no formula that a spreadsheet would run, and keep all other values', () => {
    const formula = fc.constantFrom('=1+1', '+1', '-1', '@x', '=IMPORTXML("http://x")', '\t=1', '\r=1')
    fc.assert(
      fc.property(fc.oneof(fc.string(), formula), (value) => {
        const text = formatCsv(shown([series({ a: value }, [1])]))
        const cell = text.slice(text.indexOf('Z,1,') + 4, -2)
        const back = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell
        expect(back).toBe(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value)
      }),
    )
  })
})

describe('series of metrics as a picture', () => {
  const labels = (svg: string) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((match) => match[1])
  const paths = (svg: string) => [...svg.matchAll(/<path d="([^"]*)"/g)].map((match) => match[1] ?? '')

  test('are lines with axes, units at their marks, and a legend with values', () => {
    const both = [series({ job: 'a', x: '1' }, [1e6, 3e6, 2e6]), series({ job: 'b', x: '1' }, [0, 0, 0])]
    const svg = formatChart(shown(both, { unit: 'bytes', help: 'Memory.' }))
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="960"/)
    expect(paths(svg)).toHaveLength(2)
    expect(labels(svg)).toEqual(
      expect.arrayContaining([
        'x',
        'Memory. · in bytes',
        '0',
        '1 MiB',
        '10:30',
        'job=&quot;a&quot;',
        'last 1.907 MiB, min 976.6 KiB, max 2.861 MiB',
        'last 0 B, min 0 B, max 0 B',
      ]),
    )
  })

  test('have a gap where samples are missing, and a dot for a single point', () => {
    const times = [0, 15, 30, 900, 1800, 1815].map((after) => start + after)
    const svg = formatChart(shown([series({}, [1, 2, 3, 4, 5, 6], times)]))
    expect(paths(svg)[0]?.match(/M/g)).toHaveLength(2)
    expect(svg.match(/<circle /g)).toHaveLength(1)
    expect(paths(formatChart(shown([series({}, [1, 2, Number.NaN, 4, 5])])))[0]?.match(/M/g)).toHaveLength(2)
  })

  test('are drawn with few values and with extreme ones, and state if there are no finite values', () => {
    expect(labels(formatChart(shown([])))).toContain('No finite values in this time range.')
    expect(labels(formatChart(shown([series({}, [Number.NaN])])))).toContain('No finite values in this time range.')
    for (const values of [[5], [0, 0], [-3, -3], [1e300, -1e300], [5e-324, 0], [Number.MAX_VALUE, 1], [1e15, 1e15 + 1]])
      expect(formatChart(shown([series({}, values)]))).not.toMatch(/NaN|Infinity|undefined/)
  })

  test('have a legend of limited length, which counts the omitted series', () => {
    const many = Array.from({ length: 60 }, (_, i) => series({ i: String(i) }, [i, i + 1]))
    const svg = formatChart(shown(many, { total: 500 }))
    expect(paths(svg)).toHaveLength(40)
    expect(labels(svg)).toContain('30 more lines are not named here; 460 of 500 series are not drawn.')
    expect(Number(/height="(\d+)"/.exec(svg)?.[1])).toBeLessThan(800)
  })

  test('hold no markup of a label, a name or a help text, and load nothing', () => {
    const evil = `</text><script>alert(1)</script>"'&<image href="http://x/"/>\u202e\u0000\u2028`
    const all = [series({ [evil]: evil }, [1, 2]), series({ a: evil }, [1])]
    const svg = formatChart(shown(all, { query: evil, help: evil, unit: evil })).replaceAll('\n', '')
    expect(svg).not.toMatch(/<(?:script|image|foreignObject|style|a|use)\b|\bhref="|url\(|[\u202e\p{Cc}\u2028]/u)
    const known = /<(?:svg|rect|line|path|circle|g|text)(?: [\w-]+="[^"<>]*")*\/?>|<\/?(?:svg|g|text|title|desc)>/g
    expect(svg.replace(known, '')).not.toMatch(/[<>]/)
  })

  test('show invisible characters of labels as escapes, and contain no markup of labels', () => {
    expect(escapeXml('a\u202eb\u200bc\u0007')).toBe('a\\u202eb\\u200bc\\u0007')
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeXml(text)).not.toMatch(/[<>"'\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u)
        expect(escapeXml(text).isWellFormed()).toBe(true)
      }),
    )
  })
})
