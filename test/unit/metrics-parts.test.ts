import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isPath } from '../../src/core/path.ts'
import { decodeMetricName, metricSegment } from '../../src/providers/metrics/directory.ts'
import { timeMarks, valueAxis } from '../../src/providers/metrics/drawing.ts'
import { createElementReader } from '../../src/providers/metrics/pages.ts'
import { downsample, gapEdgesOf, gapsOf, summarize } from '../../src/providers/metrics/shown.ts'
import { formatSelector, parseMatchers } from '../../src/providers/metrics/source.ts'
import {
  chooseStep,
  createValueFormat,
  familyNames,
  formatDuration,
  parseDuration,
  parseStep,
  parseTime,
  requireSpan,
  unitIn,
} from '../../src/providers/metrics/units.ts'
import { volumeOf } from '../support/volume.ts'

const now = 1_795_255_200

describe('in a request for metrics,', () => {
  test.each([
    ['now', now],
    ['-1h', now - 3600],
    ['now-1h30m', now - 5400],
    ['-7d', now - 7 * 86_400],
    ['-2w', now - 14 * 86_400],
    ['1795255200', now],
    ['1795255200.5', now + 0.5],
    ['0', 0],
    ['2026-11-21', 1_795_219_200],
    ['2026-11-21T10:00:00Z', 1_795_255_200],
    ['2026-11-21T10:00:00.250Z', 1_795_255_200.25],
    ['2026-11-21T19:00+09:00', 1_795_255_200],
    ['2026-11-21t10:00z', 1_795_255_200],
    ['-100y', 0],
  ])('the time %s is parsed as %d seconds since 1970', (text, time) => {
    expect(parseTime('start', text, now)).toBe(time)
  })

  test.each([
    '',
    '1h',
    '+1h',
    '-1',
    '-1x',
    'yesterday',
    '2026-02-30',
    '2026-13-01',
    '2026-11-21T25:00Z',
    '1e9',
    '-',
    'now-',
    '1795255200000',
    'NaN',
    '-1h -1h',
  ])('the time %j is refused, with examples', (text) => {
    expect(() => parseTime('start', text, now)).toThrow(/"start" is not a time\. Write one such as -1h/)
  })

  test('a formatted duration is parsed as the same duration', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000_000 }), (seconds) => {
        expect(parseDuration(formatDuration(seconds))).toBe(seconds)
      }),
    )
  })

  test('a step is a duration or a number, and not 0', () => {
    expect(['15s', '1m', '30', '0.5', '250ms'].map(parseStep)).toEqual([15, 60, 30, 0.5, 0.25])
    for (const text of ['0', '0s', '-5s', 'fast', ''])
      expect(() => parseStep(text)).toThrow(/"step" must be a duration of at least 1 ms/)
  })

  test('the default step is round, gives no more points than allowed, and is not smaller than the interval of the samples', () => {
    expect([60, 3600, 86_400, 7 * 86_400, 365 * 86_400].map((span) => chooseStep(span, 15, 240))).toEqual([
      15,
      15,
      600,
      3600,
      2 * 86_400,
    ])
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 ** 9 }), fc.integer({ min: 1, max: 300 }), (span, interval) => {
        const step = chooseStep(span, interval, 500)
        expect(step).toBeGreaterThanOrEqual(interval)
        expect(span / step).toBeLessThanOrEqual(500)
      }),
    )
  })

  test('a span that is empty, or has too many steps, is refused with advice', () => {
    expect(() => requireSpan({ start: 5, end: 5, step: 1 })).toThrow(/"start" must be before "end"/)
    expect(() => requireSpan({ start: 0, end: 86_400, step: 1 })).toThrow(/86400 points .* at least 10s/)
  })
})

describe('the path segment for the name of a metric', () => {
  test('is the name itself if possible', () => {
    for (const name of ['up', 'a:b', 'http.server.duration', '日本語 𠮷', 'a b', '%2F'])
      expect(metricSegment(name)).toBe(name)
  })

  test('is escaped as in Prometheus if the name cannot be a segment', () => {
    expect(['a/b', '..', 'U__x', 'a\nb', 'x/_'].map(metricSegment)).toEqual([
      'U__a_2f_b',
      'U___2e__2e_',
      'U__U____x',
      'U__a_a_b',
      'U__x_2f___',
    ])
    expect(['', 'x'.repeat(2000), '\ud800'].map(metricSegment)).toEqual([undefined, undefined, undefined])
  })

  test('is unique, valid in a path, and gives the name again', () => {
    const character = fc.oneof(
      fc.constantFrom('_', '/', 'U', '.', '2', 'F', ':', '\n', '𠮷', '\u2028'),
      fc.string({ unit: 'grapheme', maxLength: 1 }),
    )
    fc.assert(
      fc.property(fc.array(character, { minLength: 1, maxLength: 12 }), (characters) => {
        const name = characters.join('')
        fc.pre(name !== '' && name.isWellFormed())
        const segment = metricSegment(name) ?? ''
        expect(isPath(segment) && !segment.includes('/')).toBe(true)
        expect(decodeMetricName(segment)).toBe(name)
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.constantFrom('U__', '_', '__', 'A', '_2F_', '_A_', 'f'), { maxLength: 8 }), (parts) => {
        const segment = parts.join('')
        const name = decodeMetricName(segment)
        if (name !== undefined) expect(metricSegment(name)).toBe(segment)
      }),
    )
  })
})

describe('label matchers in a request for metrics', () => {
  test.each([
    ['job="node"', 'up{job="node"}'],
    ['{job="node", instance!~"web.*",}', 'up{job="node",instance!~"web.*"}'],
    ["{job='it\\'s'}", 'up{job="it\'s"}'],
    ['job=`C:\\n`', 'up{job="C:\\\\n"}'],
    ['job="a\\"b\\\\c\\u0041"', 'up{job="a\\"b\\\\cA"}'],
    ['"my.label"="x"', 'up{"my.label"="x"}'],
    ['{}', 'up'],
    ['', 'up'],
  ])('written as %j give the selector %s', (match, selector) => {
    expect(formatSelector({ metric: 'up', matchers: parseMatchers(match) })).toBe(selector)
  })

  test.each([
    'job',
    'job=',
    'job=node',
    '{job="a"',
    'job="a"}',
    'job="a"} or vector(1)',
    'job=="a"',
    '="a"',
    'job="a" instance="b"',
    '__name__="up"',
    'job="\\x41"',
    'job="\\ud800"',
    '{job="a"}[5m]',
    '1a="x"',
    `a="${'x'.repeat(3000)}"`,
    Array(40).fill('a="b"').join(','),
  ])('written as %j are refused, with an example', (match) => {
    expect(() => parseMatchers(match)).toThrow(/Write label matchers, such as match=\{job="node"/)
  })

  test('are not ended by a quote in a value, or in the name of the metric', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (value, metric) => {
        const text = formatSelector({ metric, matchers: [{ label: 'job', operator: '=', value }] })
        const [, inner = ''] = /\{([\s\S]*)\}$/.exec(text) ?? []
        const last = parseMatchers(inner.replace(/^__name__=/, 'name_='))
        expect(last.at(-1)).toEqual({
          label: 'job',
          operator: '=',
          value: value.toWellFormed() === value ? value : last.at(-1)?.value,
        })
      }),
    )
  })
})

describe('down-sampling a series', () => {
  const value = fc.oneof(
    { weight: 8, arbitrary: fc.double({ min: -1e6, max: 1e6, noNaN: true }) },
    { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0) },
  )
  const points = fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), value), { maxLength: 600 }).map((pairs) => {
    let time = 1000
    const times = Float64Array.from(pairs, ([apart]) => {
      time += apart
      return time
    })
    return { times, values: Float64Array.from(pairs, ([, one]) => one) }
  })
  const most = fc.integer({ min: 8, max: 200 })
  const pick = (values: Float64Array, indices: readonly number[]) => indices.map((index) => values[index] ?? 0)
  const numbers = (values: readonly number[]) => values.filter((one) => !Number.isNaN(one))

  test('gives at most the requested points, in order, and all if there are fewer', () => {
    fc.assert(
      fc.property(points, most, (series, limit) => {
        const indices = downsample(series, limit)
        expect(indices.length).toBeLessThanOrEqual(limit)
        expect([...indices]).toEqual([...new Set(indices)].sort((a, b) => a - b))
        if (series.times.length <= limit) expect(indices).toHaveLength(series.times.length)
      }),
    )
  })

  test('keeps the smallest, the largest, the first and the last point', () => {
    fc.assert(
      fc.property(points, most, (series, limit) => {
        const indices = downsample(series, limit)
        const all = numbers([...series.values])
        const shown = numbers(pick(series.values, indices))
        if (all.length > 0) {
          expect(Math.min(...shown)).toBe(Math.min(...all))
          expect(Math.max(...shown)).toBe(Math.max(...all))
        }
        if (series.times.length > 0) expect([indices[0], indices.at(-1)]).toEqual([0, series.times.length - 1])
      }),
    )
  })

  test('keeps a single peak at any place', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9999 }), (peak) => {
        const times = Float64Array.from({ length: 10_000 }, (_, i) => i * 15)
        const values = Float64Array.from(times, (_, i) => (i === peak ? 100 : Math.sin(i / 50)))
        expect(downsample({ times, values }, 240)).toContain(peak)
      }),
      { numRuns: volumeOf(50, 20) },
    )
  })

  test('keeps the edges of gaps, up to a quarter of the points', () => {
    const times = Float64Array.from({ length: 2000 }, (_, i) => i * 15 + (i > 700 ? 900 : 0) + (i > 1500 ? 600 : 0))
    const values = new Float64Array(2000)
    const gaps = gapsOf(times, 15)
    expect(gaps.map(({ after }) => after)).toEqual([700, 1500])
    const indices = downsample({ times, values }, 40, gapEdgesOf(gaps))
    for (const index of [700, 701, 1500, 1501]) expect(indices).toContain(index)
    const many = downsample(
      { times, values },
      40,
      Array.from({ length: 500 }, (_, i) => i),
    )
    expect(many.length).toBeLessThanOrEqual(40)
  })

  test('gives at most the requested points also if the times do not increase', () => {
    const times = new Float64Array(100).fill(7)
    expect(downsample({ times, values: new Float64Array(100) }, 20).length).toBeLessThanOrEqual(20)
  })
})

describe('the summary of a series', () => {
  const of = (values: readonly number[], isCounter = false) =>
    summarize({ times: Float64Array.from(values, (_, i) => i * 10), values: Float64Array.from(values) }, isCounter)

  test('has its first, smallest, largest, last and mean value, without NaN', () => {
    expect(of([3, 1, Number.NaN, 8, 5])).toMatchObject({
      points: 5,
      first: { value: 3, time: 0 },
      min: { value: 1, time: 10 },
      max: { value: 8, time: 30 },
      last: { value: 5, time: 40 },
      mean: 4.25,
    })
    expect(of([])).toBeUndefined()
    expect(of([Number.NaN, Number.POSITIVE_INFINITY])).toBeUndefined()
  })

  test.each([
    [[1, 2, 3, 4, 5], 'rising'],
    [[5, 4, 4, 3, 1], 'falling'],
    [[100, 100.2, 99.9, 100], 'flat'],
    [[1, 9, 1, 9, 1, 9, 1], 'varying'],
    [[7], 'flat'],
    [[0, 0, 0], 'flat'],
  ] as const)('of %j has the trend %s', (values, trend) => {
    expect(of(values)?.trend).toBe(trend)
  })

  test('of a counter has its increase, also across a reset', () => {
    expect(of([10, 20, 5, 15], true)).toMatchObject({ increase: 25, perSecond: 25 / 30 })
  })
})

describe('the unit of a metric', () => {
  test.each([
    ['node_memory_active_bytes', 'bytes'],
    ['http_request_duration_seconds_sum', 'seconds'],
    ['http_request_duration_seconds_bucket', 'seconds'],
    ['http_request_duration_seconds_count', undefined],
    ['process_cpu_seconds_total', 'seconds'],
    ['process_start_time_seconds', undefined],
    ['cpu_usage_ratio', 'ratio'],
    ['up', undefined],
  ])('of %s is %s', (name, unit) => {
    expect(unitIn(name)).toBe(unit)
  })

  test('gives each value a prefix that keeps it short, such as 1.5 MiB or 12.3 ms', () => {
    const write = (unit: string | undefined, value: number) => createValueFormat(unit).format(value)
    expect(write('bytes', 1536 * 1024)).toBe('1.5 MiB')
    expect(write('bytes', 0)).toBe('0 B')
    expect(write('seconds', 0.0123)).toBe('12.3 ms')
    expect(write('seconds', 5400)).toBe('1.5 h')
    expect(write('ratio', 0.4567)).toBe('45.67%')
    expect(write(undefined, 1234.5)).toBe('1.234k')
    expect(write(undefined, -0.5)).toBe('-0.5')
    expect(write('hertz', 2.4e9)).toBe('2.4 GHz')
    expect(write('celsius', 21.375)).toBe('21.38 °C')
    expect([Number.NaN, Number.POSITIVE_INFINITY].map((value) => write('bytes', value))).toEqual(['NaN', '+Inf'])
    expect(familyNames('x_seconds_bucket')).toEqual(['x_seconds_bucket', 'x_seconds'])
  })
})

describe('the axis of a picture of metrics', () => {
  const texts = (low: number, high: number, unit?: string) =>
    valueAxis(low, high, createValueFormat(unit)).marks.map(({ text }) => text)

  test('has round, distinct marks around its values', () => {
    expect(texts(0.2, 9.3)).toEqual(['0', '2', '4', '6', '8', '10'])
    expect(texts(100.1, 100.4)).toEqual(['100.1', '100.2', '100.3', '100.4'])
    expect(texts(-4, 8)).toEqual(['-5', '-2.5', '0', '2.5', '5', '7.5', '10'])
    expect(texts(0, 5.8 * 2 ** 30, 'bytes')).toEqual(['0', '2 GiB', '4 GiB', '6 GiB'])
    expect(texts(3, 3)).toEqual(['0', '1', '2', '3', '4'])
    const tiny = texts(-1.0000000000002501e-145, -0.9990000000000001e-145)
    expect(new Set(tiny).size).toBe(tiny.length)
    fc.assert(
      fc.property(
        fc.double({ min: -1e12, max: 1e12, noNaN: true }),
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        fc.constantFrom(undefined, 'bytes', 'seconds', 'ratio', 'hertz'),
        (low, more, unit) => {
          const slack = (Math.abs(low) + more) * 1e-8 + 1e-150
          const { marks, ...axis } = valueAxis(low, low + more, createValueFormat(unit))
          expect(axis.low).toBeLessThanOrEqual(low + slack)
          expect(axis.high).toBeGreaterThanOrEqual(low + more - slack)
          expect(marks.length).toBeGreaterThanOrEqual(2)
          expect(marks.length).toBeLessThanOrEqual(12)
          if (more > slack * 100) expect(new Set(marks.map(({ text }) => text)).size).toBe(marks.length)
        },
      ),
    )
  })

  test('of times has round times, and the date at the beginning of a day', () => {
    const from = Date.UTC(2026, 10, 20, 22, 10) / 1000
    expect(timeMarks(from, from + 4 * 3600, 9).map(({ text }) => text)).toEqual([
      ...['22:30', '23:00', '23:30', '2026-11-21', '00:30', '01:00', '01:30', '02:00'],
    ])
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e9 }), fc.integer({ min: 1, max: 4e9 }), (start, span) => {
        const marks = timeMarks(start, start + span, 9)
        expect(marks.length).toBeLessThanOrEqual(11)
        for (const { value } of marks) expect(value >= start && value <= start + span).toBe(true)
      }),
    )
  })
})

describe('the reader of the elements of an answer of Prometheus', () => {
  test('finds the elements however the answer is split, and returns the rest of the answer as JSON', () => {
    const result = [{ metric: { a: '}]"\\' }, values: [[1, '{']] }, { metric: {} }, { metric: { b: '日本語' } }]
    const answer = { status: 'success', data: { resultType: 'matrix', result, stats: { x: [1] } }, warnings: ['w'] }
    const bytes = Buffer.from(JSON.stringify(answer))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 20 }), (cuts) => {
        const found: unknown[] = []
        const reader = createElementReader((json) => found.push(JSON.parse(Buffer.from(json).toString())))
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        for (const [index, from] of places.entries()) reader.push(bytes.subarray(from, places[index + 1] ?? from))
        expect(found).toEqual(result)
        expect(JSON.parse(reader.end())).toEqual({ ...answer, data: { ...answer.data, result: [0, 0, 0] } })
      }),
    )
  })

  test('finds no elements in any other answer, and does not complete a truncated answer', () => {
    for (const text of ['', '[]', '<html>', '{"data":{"result":[{"a":1', '}}}]]]', '"{{[{']) {
      const reader = createElementReader(() => expect.unreachable())
      reader.push(Buffer.from(text))
      expect(reader.end()).toBe(text)
    }
  })
})
