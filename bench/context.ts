import { setTimeout as sleep } from 'node:timers/promises'
import { type AssembleOptions, assemble, openCounter } from '../src/context/index.ts'
import { type PackItem, pack } from '../src/context/prefix.ts'
import { createCatalog } from '../src/core/catalog.ts'
import { memory } from '../test/support/memory.ts'
import { callsOnInit, callsWithoutIndex } from './context-calls.ts'
import { fixed, measure, median, progress, table } from './support.ts'

// Measures the packing of 10,000 candidates against an upper bound, the assembly of a context from a list of 10,000 resources, the speed of
// counting tokens, and calls of assemble_context with the configuration that `hikidashi init` writes.

const count = 10_000
const most = 2000
const rounds = 5

/** Returns a generator of pseudo-random numbers, the same at each run. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function candidates(): readonly PackItem[] {
  const next = numbers(7)
  return Array.from({ length: count }, (_, index) => {
    const full = 100 + Math.floor(8000 * next() ** 2)
    const options = [
      { tokens: 25 + Math.floor(20 * next()), worth: 0.03 },
      { tokens: Math.ceil(full * 0.1) + 30, worth: 0.35 },
      { tokens: Math.ceil(full * 0.4) + 30, worth: 0.6 },
      { tokens: full + 30, worth: 1 },
    ]
    return { uri: `memory://docs/${index}`, score: 11 / (10 + index + 1), options }
  })
}

/** Upper bound of the value of a packing: the best value if the last step could be taken in part. */
function bound(items: readonly PackItem[], budget: number): number {
  const steps = items.flatMap(({ score, options }) => {
    const hull = [{ tokens: 0, worth: 0 }]
    for (const option of options) {
      for (;;) {
        const [before, last] = hull.slice(-2)
        if (before === undefined || last === undefined) break
        const isFlatter =
          (last.worth - before.worth) * (option.tokens - last.tokens) <=
          (option.worth - last.worth) * (last.tokens - before.tokens)
        if (!isFlatter) break
        hull.pop()
      }
      hull.push(option)
    }
    return hull.slice(1).map((option, index) => {
      const tokens = option.tokens - (hull[index]?.tokens ?? 0)
      return { tokens, value: score * (option.worth - (hull[index]?.worth ?? 0)) }
    })
  })
  steps.sort((a, b) => b.value / b.tokens - a.value / a.tokens)
  let left = budget
  let value = 0
  for (const step of steps) {
    const share = Math.min(1, left / step.tokens)
    value += share * step.value
    left -= share * step.tokens
    if (left <= 0) break
  }
  return value
}

async function packing(): Promise<readonly (string | number)[][]> {
  const items = candidates()
  const rows: (string | number)[][] = []
  for (const budget of [8000, 32_000, 128_000]) {
    const limits = { budget, cap: budget / 4, frame: 40, items: count }
    const times: number[] = []
    let packed = await pack(items, limits)
    for (let round = 0; round < rounds; round++) {
      const run = await measure(async () => pack(items, limits))
      packed = run.value
      times.push(run.ms)
    }
    if (packed === undefined) throw new Error('nothing is required, and yet it does not fit')
    const value = [...packed.taken].reduce((sum, [item, at]) => sum + item.score * (item.options[at]?.worth ?? 0), 0)
    rows.push([
      `pack, ${budget} tokens`,
      fixed(Math.max(...times) / 1000, 3),
      `${fixed((100 * packed.tokens) / budget)} %`,
      `${fixed((100 * value) / bound(items, budget))} %`,
      packed.taken.size,
    ])
    if (Math.max(...times) > most) process.exitCode = 1
  }
  return rows
}

async function assembling(): Promise<readonly (string | number)[][]> {
  const next = numbers(11)
  const words = Array.from({ length: 800 }, (_, index) => `term${index}`)
  const text = () => Array.from({ length: 120 }, () => words[Math.floor(words.length * next() ** 2)] ?? '').join(' ')
  const entries = Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`folder-${n % 100}/file-${n}-term${n % 40}.md`, text()]),
  )
  const catalog = createCatalog({ mounts: [{ address: 'memory://docs', provider: memory(entries) }] })
  const view = catalog.view({ id: 'bench', roles: [] })
  await openCounter('o200k_base')
  const rows: (string | number)[][] = []
  for (const [name, given] of [
    ['with a query', { query: 'term7 term21' }],
    ['without one', {}],
  ] as const) {
    const options: AssembleOptions = { budget: 32_000, now: 0, ...given }
    const runs: Awaited<ReturnType<typeof measure<Awaited<ReturnType<typeof assemble>>>>>[] = []
    for (let round = 0; round < rounds; round++) {
      runs.push(await measure(() => assemble(view, options)))
      await sleep(50)
    }
    const [first] = runs
    if (first === undefined) throw new Error('nothing was run')
    const ms = runs.map((run) => run.ms)
    rows.push([
      `assemble from ${count} resources, ${name}`,
      `${fixed((ms[0] ?? 0) / 1000, 2)} first, ${fixed(median(ms) / 1000, 2)} median`,
      `${fixed((100 * first.value.tokens) / 32_000)} %`,
      `longest pause ${fixed(Math.max(...runs.map((run) => run.pause)), 0)} ms`,
      first.value.items.length,
    ])
    if (Math.max(...ms) > most) process.exitCode = 1
  }
  return rows
}

async function counting(): Promise<readonly (string | number)[][]> {
  const counter = await openCounter('o200k_base')
  const next = numbers(3)
  const mixed = Array.from({ length: 60_000 }, () => `word${Math.floor(next() * 5000)}`).join(' ')
  const texts = {
    'English-like': mixed,
    'one run of _, 1 MB': '_'.repeat(1_000_000),
    'one run of kana, 1 M': 'あいうえお'.repeat(200_000),
  }
  const rows: (string | number)[][] = []
  for (const [name, text] of Object.entries(texts)) {
    const { value, ms, pause } = await measure(() => counter.count(text))
    rows.push([`count: ${name}`, fixed(ms / 1000, 3), `${value} tokens`, `longest pause ${fixed(pause, 0)} ms`, ''])
  }
  return rows
}

/** With `--calls`, only the calls of assemble_context are measured. */
if (!process.argv.includes('--calls')) {
  progress('packing …')
  const packed = await packing()
  progress('assembling …')
  const assembled = await assembling()
  progress('counting …')
  const head = ['', 'seconds', 'of the budget', 'of what could be had', 'resources']
  process.stdout.write(`${table(head, [...packed, ...assembled, ...(await counting())])}\n\n`)
}

const ways = [
  ['assemble_context on what init writes', callsOnInit],
  ['assemble_context on the files of this repository, without an index', callsWithoutIndex],
] as const
for (const [name, measureCalls] of ways) {
  progress(`${name} …`)
  const rows = (await measureCalls()).map(([call, { cpuSeconds, seconds, peakMegabytes }]) => [
    call,
    fixed(cpuSeconds, 2),
    fixed(seconds, 2),
    fixed(peakMegabytes, 0),
  ])
  process.stdout.write(`${table([name, 'CPU seconds', 'seconds', 'memory of the process, MB'], rows)}\n\n`)
}
// Threads of closed mounts may still be running.
process.exit()
