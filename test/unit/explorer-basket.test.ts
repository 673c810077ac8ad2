import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import {
  type BasketItem,
  type BasketLevel,
  planBasket,
  suggestSavings,
  type TokenCost,
  usableBudget,
} from '../../src/browse/basket.ts'
import { requestBasketCosts } from '../../src/explorer/web/basket/ask.ts'
import { addToBasket, basket, maxBasketItems, moveInBasket, toggleFile } from '../../src/explorer/web/basket/picked.ts'
import { formatPicks, formatStoredBasket, parsePicks, parseStoredBasket } from '../../src/explorer/web/basket/store.ts'
import { fileNameOf } from '../../src/explorer/web/state/session.ts'

const item = (uri: string, level: BasketLevel = 'auto'): BasketItem => ({ resource: { uri, name: uri }, level })
const cost = (full: number, outline?: number, link = 10): TokenCost => ({
  ...{ levels: { full, link, ...(outline === undefined ? {} : { outline }) }, missing: false, notes: [] },
})

describe('the tokens of a basket', () => {
  test('are those of the full texts, and of the frame around them, if they fit the budget', () => {
    const plan = planBasket(
      [item('a'), item('b')],
      new Map([
        ['a', cost(100)],
        ['b', cost(200, 50)],
      ]),
      20,
      400,
    )
    expect(plan).toMatchObject({ tokens: 320, over: 0, isWhole: true })
    expect(plan.items.map(({ taken }) => taken)).toEqual(['full', 'full'])
  })

  test('are lowered at the item where a lower level saves most, and never at an item whose level the user chose', () => {
    const costs = new Map([
      ['a', cost(1000, 100)],
      ['b', cost(900, 90)],
    ])
    expect(planBasket([item('a'), item('b')], costs, 0, 1100).items.map(({ taken }) => taken)).toEqual([
      'outline',
      'full',
    ])
    expect(planBasket([item('a', 'full'), item('b')], costs, 0, 1100).items.map(({ taken }) => taken)).toEqual([
      'full',
      'outline',
    ])
    const stuck = planBasket([item('a', 'full'), item('b', 'full')], costs, 0, 1100)
    expect(stuck.over).toBe(800)
  })

  test('are those of the next lower level if an item lacks the chosen one', () => {
    const plan = planBasket([item('a', 'windows')], new Map([['a', cost(100, 40)]]), 0, 1000)
    expect(plan.items[0]).toMatchObject({ taken: 'outline', tokens: 40 })
  })

  test('leave out an item that is not counted yet, and are marked as incomplete', () => {
    const plan = planBasket([item('a'), item('b')], new Map([['a', cost(100)]]), 5, 1000)
    expect(plan).toMatchObject({ isWhole: false, tokens: 105 })
    expect(plan.items[1]?.tokens).toBeUndefined()
  })

  test('fit the budget whenever that is possible', () => {
    const costs = fc.record({ full: fc.nat(50_000), outline: fc.nat(5000), link: fc.nat(60) })
    fc.assert(
      fc.property(fc.array(costs, { maxLength: 12 }), fc.nat(60_000), (list, usable) => {
        const items = list.map((_, at) => item(`u${at}`))
        const known = new Map(list.map((levels, at) => [`u${at}`, { levels, missing: false, notes: [] }] as const))
        const plan = planBasket(items, known, 7, usable)
        const least = list.reduce(
          (sum, levels) => sum + Math.min(levels.full, levels.outline, levels.link),
          list.length > 0 ? 7 : 0,
        )
        expect(plan.over > 0).toBe(least > usable)
        const counted = plan.items.reduce((sum, { tokens = 0 }) => sum + tokens, list.length > 0 ? 7 : 0)
        expect(plan.tokens).toBe(counted)
      }),
    )
  })

  test('leave 3 % of the budget free', () => expect(usableBudget(32_000)).toBe(31_040))
})

describe('the suggestions for a basket over its budget', () => {
  test('begin with the smallest single change that suffices', () => {
    const costs = new Map([
      ['a', cost(1000, 300)],
      ['b', cost(500)],
    ])
    const plan = planBasket([item('a', 'full'), item('b', 'full')], costs, 0, 1200)
    expect(suggestSavings(plan, costs)).toEqual([
      { what: 'lower', uri: 'b', to: 'link', saved: 490, suffices: true },
      { what: 'lower', uri: 'a', to: 'outline', saved: 700, suffices: true },
      { what: 'lower', uri: 'a', to: 'link', saved: 990, suffices: true },
    ])
    expect(suggestSavings(planBasket([item('a')], costs, 0, 1200), costs)).toEqual([])
  })

  test('begin with the largest saving if no single change suffices', () => {
    const costs = new Map([
      ['a', cost(1000)],
      ['b', cost(900)],
    ])
    const plan = planBasket([item('a', 'full'), item('b', 'full')], costs, 0, 50)
    expect(suggestSavings(plan, costs)[0]).toEqual({ what: 'drop', uri: 'a', saved: 1000, suffices: false })
  })
})

describe('a basket of the explorer', () => {
  afterEach(() => {
    basket.value = []
  })

  test('has each resource once, no directories, and a limited number of resources, which can be moved and removed', () => {
    toggleFile({ uri: 'file:///a', name: 'a' })
    addToBasket([item('file:///a'), item('file:///dir/'), item('file:///b', 'outline')])
    expect(basket.value.map(({ resource }) => resource.uri)).toEqual(['file:///a', 'file:///b'])
    moveInBasket('file:///b', -5)
    expect(basket.value.map(({ resource }) => resource.uri)).toEqual(['file:///b', 'file:///a'])
    toggleFile({ uri: 'file:///b', name: 'b' })
    expect(basket.value).toHaveLength(1)
    addToBasket(Array.from({ length: 2 * maxBasketItems }, (_, at) => item(`u:${at}`)))
    expect(basket.value).toHaveLength(maxBasketItems)
  })

  test('is read back from a link, unless it is too long for one, and from the storage of the browser, without invalid entries', () => {
    const items = [item('file:///日本/a b.md', 'outline'), item('git://x/y?lines=1-2')]
    expect(parsePicks(formatPicks(items) ?? '').map(({ resource, level }) => [resource.uri, level])).toEqual([
      ['file:///日本/a b.md', 'outline'],
      ['git://x/y?lines=1-2', 'auto'],
    ])
    expect(parsePicks('everything file:///a\nfull\n\nlink file:///b')).toHaveLength(1)
    expect(formatPicks(Array.from({ length: 400 }, (_, at) => item(`file:///long/name/${at}`)))).toBeUndefined()
    expect(parseStoredBasket(formatStoredBasket(items))).toEqual(items)
    for (const broken of [null, '', '{', '7', '[1, null, {"uri": 3}, {"uri": "a", "level": "all"}]'])
      expect(parseStoredBasket(broken)).toEqual([])
  })
})

describe('the token counts of the server', () => {
  test('match the items of a basket whether or not their URIs are percent-encoded, and are empty for an item without an answer', async () => {
    const pins = ['docs://a/就業 規則.md', 'docs://a/plain.md', 'docs://a/unanswered.md']
    const items = [
      {
        uri: 'docs://a/%E5%B0%B1%E6%A5%AD%20%E8%A6%8F%E5%89%87.md',
        levels: { link: 1, full: 9 },
        missing: false,
        notes: [],
      },
      { uri: 'docs://a/plain.md', levels: { link: 2 }, missing: true, notes: ['gone'] },
    ]
    const call = async () => ({ frame: 5, items })
    const settings = { budget: 8000, encoding: 'o200k_base', format: 'xml', purpose: '' } as const
    const connection = { call } as unknown as Parameters<typeof requestBasketCosts>[0]
    const picked = pins.map((uri) => item(uri))
    const { frame, costs } = await requestBasketCosts(connection, picked, settings, new AbortController().signal)
    expect(frame).toBe(5)
    expect([...costs]).toEqual([
      [pins[0], { levels: { link: 1, full: 9 }, missing: false, notes: [] }],
      [pins[1], { levels: { link: 2 }, missing: true, notes: ['gone'] }],
      [pins[2], { levels: {}, missing: false, notes: [] }],
    ])
  })
})

describe('the file name of a download', () => {
  test.each([
    ['../../etc/passwd', '_.._etc_passwd'],
    ['a\r\nSet-Cookie: x', 'a_Set-Cookie_ x'],
    ['con', '_con'],
    ['COM1.txt', '_COM1.txt'],
    ['invoice\u202etxt.exe', 'invoice_txt.exe'],
    ['  .hidden. ', 'hidden'],
    ['日本語 設計.md', '日本語 設計.md'],
    ['', 'resource'],
    ['///', 'resource'],
  ])('is safe in every file system: %j', (text, name) => expect(fileNameOf(text)).toBe(name))

  test('is truncated to 120 characters, and keeps its extension', () => {
    const name = fileNameOf(`${'長'.repeat(4000)}.md`)
    expect([...name]).toHaveLength(120)
    expect(name.endsWith('.md')).toBe(true)
  })
})
