import { describe, expect, test } from 'vitest'
import {
  chartOfJson,
  chartOfTable,
  createUnitFormatter,
  timeLabels,
  valueLabels,
} from '../../src/explorer/web/preview/model/series.ts'
import { seriesDocument } from '../support/preview-files.ts'

describe('the chart of a time series document', () => {
  test('has the times of all series, and a gap where a value is missing', () => {
    const chart = chartOfJson(JSON.parse(seriesDocument()))
    expect(chart?.series.map(({ label }) => label)).toEqual(['host=a', 'host=b'])
    expect(chart?.unit).toBe('bytes')
    expect(chart?.times).toHaveLength(120)
    const [whole, gapped] = chart?.series ?? []
    expect(whole?.values.filter((value) => value === null)).toEqual([])
    expect(gapped?.values.slice(49, 52)).toEqual([expect.any(Number), null, null])
    expect(gapped?.count).toBe(240)
  })

  test('skips invalid numbers, and labels a single series with all of its labels', () => {
    const chart = chartOfJson({
      step: 1,
      series: [
        {
          labels: { __name__: 'up', job: 'a' },
          points: [
            [1, 2],
            [2, 'NaN'],
            ['x', 3],
            [3, 4],
          ],
        },
      ],
      omitted: { of: 9 },
    })
    expect(chart).toMatchObject({ times: [1, 3], of: 9, series: [{ label: 'up{job=a}', min: 2, max: 4, last: 4 }] })
  })

  test('is absent if the document has no values, or is no time series', () => {
    for (const value of [null, [], {}, { step: 1, series: [] }, { series: [{ points: [[1, 2]] }] }, 'x'])
      expect(chartOfJson(value)).toBeUndefined()
  })
})

describe('the chart of a table', () => {
  test('has a line for each column of numbers beside a column of times', () => {
    const chart = chartOfTable([
      ['日時', '内', '外', 'note'],
      ['2026/1/2 10:00', '1', '5', ''],
      ['2026-01-02T11:00:00Z', '2', '', ''],
    ])
    expect(chart?.times).toEqual([Date.UTC(2026, 0, 2, 10) / 1000, Date.UTC(2026, 0, 2, 11) / 1000])
    expect(chart?.series.map(({ label, values }) => [label, values])).toEqual([
      ['内 {note=}', [1, 2]],
      ['外 {note=}', [5, undefined]],
    ])
  })

  test('has a line for each combination of labels, as the metrics provider writes them', () => {
    const chart = chartOfTable([
      ['time', 'value', 'host'],
      ['1700000000', '1', 'a'],
      ['1700000000', '2', 'b'],
      ['1700000060', '3', 'a'],
    ])
    expect(chart?.series.map(({ label, values }) => [label, values])).toEqual([
      ['host=a', [1, 3]],
      ['host=b', [2, undefined]],
    ])
  })

  test('is absent without times or numbers', () => {
    expect(
      chartOfTable([
        ['name', 'n'],
        ['a', '1'],
        ['b', '2'],
      ]),
    ).toBeUndefined()
    expect(
      chartOfTable([
        ['time', 'n'],
        ['soon', '1'],
        ['later', '2'],
      ]),
    ).toBeUndefined()
    expect(
      chartOfTable([
        ['time', 'n'],
        ['2026-01-01', 'x'],
        ['2026-01-02', 'y'],
      ]),
    ).toBeUndefined()
  })
})

test('values of a chart have readable units', () => {
  expect(createUnitFormatter('bytes', 'en')(3 * 1024 * 1024)).toBe('3 MiB')
  expect(createUnitFormatter('seconds', 'en')(0.0125)).toBe('12.5 ms')
  expect(createUnitFormatter('ratio', 'en')(0.5)).toBe('50 %')
  expect(createUnitFormatter(undefined, 'ja')(1_230_000)).toBe('123万')
})

test('neighbouring labels of an axis differ', () => {
  expect(valueLabels([0, 0.5, 1], undefined, 'en')).toEqual(['0', '0.5', '1'])
  expect(valueLabels([1_000_001, 1_000_002, 1_000_003], undefined, 'en')).toEqual([
    '1.000001M',
    '1.000002M',
    '1.000003M',
  ])
  expect(valueLabels([12_345.61, 12_345.62], undefined, 'en')).toEqual(['12,345.61', '12,345.62'])
  expect(valueLabels([1024, 2048], 'bytes', 'en')).toEqual(['1 KiB', '2 KiB'])

  const noon = new Date(2026, 10, 23, 12).getTime() / 1000
  const halfDays = [0, 1, 2, 3].map((count) => noon + count * 43_200)
  expect(new Set(timeLabels(halfDays, 4 * 86_400, 'en')).size).toBe(4)
  const weeks = [0, 7, 14].map((count) => noon + count * 86_400)
  expect(new Set(timeLabels(weeks, 300 * 86_400, 'en')).size).toBe(3)
  const hours = timeLabels([noon, noon + 43_200], 86_400, 'en')
  expect(hours).toEqual(['12:00 PM', 'Nov 24'])
  expect(new Set(timeLabels([noon, noon + 0.25, noon + 0.5], 1, 'en')).size).toBe(3)
})
