import type { VNode } from 'preact'
import { expect, test } from 'vitest'
import { createUrl, followSteps, pushStep, replaceStep, stepBack, stepTo } from '../../src/explorer/web/host/connect.ts'
import { ChartView, parseMarkdown } from '../../src/explorer/web/host/views.tsx'
import { plainHtml } from '../../src/explorer/web/preview/model/bounds.ts'
import { language } from '../../src/explorer/web/words/texts.ts'

test('inside of a host, a document that would block the page is shown as its text', async () => {
  const endless = '_a'.repeat(50_000)
  expect(await parseMarkdown(endless)).toEqual(plainHtml(endless))
  const long = 'A line.\n\n'.repeat(20_000)
  expect(await parseMarkdown(long)).toEqual(plainHtml(long))
  const usual = 'Some *text* with [links](a.md) and `code`.\n\n'.repeat(2000)
  expect((await parseMarkdown(usual)).html).toContain('<em>text</em>')
})

test('inside of a host, the table of a time series begins with a column of times, whose head is in the chosen language', () => {
  const initial = language.value
  const chart = { times: [0], series: [{ label: 'load', values: [1], last: 1, min: 1, max: 1, count: 1 }] }
  const headIn = (code: typeof initial) => {
    language.value = code
    return (ChartView({ chart }) as VNode<{ readonly rows: readonly unknown[] }>).props.rows[0]
  }
  try {
    expect(headIn('en')).toEqual(['Time', 'load'])
    expect(headIn('ja')).toEqual(['時刻', 'load'])
  } finally {
    language.value = initial
  }
})

test('inside of a host, the history of shown places is kept in memory, and "back" returns through it', () => {
  const seen: string[] = []
  followSteps((fragment) => seen.push(fragment))
  pushStep('#uri=a')
  replaceStep('#uri=b')
  stepTo('#uri=c')
  stepBack()
  stepBack()
  stepBack()
  expect(seen).toEqual(['#view=tree', '#uri=c', '#uri=b', '#view=tree', '#view=tree'])
})

test('inside of a host, bytes and texts become data URLs', () => {
  const bytes = Uint8Array.from({ length: 20_000 }, (_, at) => at % 251)
  const [head, body = ''] = createUrl(bytes, 'image/png').split(',')
  expect(head).toBe('data:image/png;base64')
  expect(Buffer.from(body, 'base64').equals(bytes)).toBe(true)
  expect(createUrl('<svg/>', 'image/svg+xml')).toBe(`data:image/svg+xml;base64,${btoa('<svg/>')}`)
})
