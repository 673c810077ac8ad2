import { afterAll, afterEach, vi } from 'vitest'
import { seedVariable } from './again.ts'
import { endAll } from './endings.ts'
import { countProcessors } from './processor-time.ts'

// Runs before each test file. Files share a process, so each must leave it unchanged.

/** Variables that vitest sets for each file, and one that `providers/s3` sets when it is loaded. */
const setByOthers = /^(?:VITEST_.*|AWS_EC2_METADATA_DISABLED)$/

const folder = process.cwd()
const environment = environmentNow()

// Registered before the hooks of the file, so these run after them.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads the parameter, and takes a name in it for a fixture.
afterAll(({}, file) => {
  countProcessors(file)
  const changed = changesOf(environment)
  if (process.cwd() !== folder) changed.push('the current folder')
  if (vi.isFakeTimers()) changed.push('the clock')
  if (changed.length === 0) return
  // Fake timers must not affect later files.
  vi.useRealTimers()
  process.chdir(folder)
  for (const name of Object.keys(process.env))
    if (!environment.has(name) && !setByOthers.test(name)) delete process.env[name]
  for (const [name, value] of environment) process.env[name] = value
  throw new Error(`The file has changed its process, and not put back: ${changed.join(', ')}.`)
})
afterEach(endAll)

// Sets the seed of fast-check if a run is repeated.
const seed = process.env[seedVariable]
if (seed !== undefined) {
  const { configureGlobal } = await import('fast-check')
  configureGlobal({ seed: Number(seed) })
}

function environmentNow(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(process.env).flatMap(([name, value]) =>
      setByOthers.test(name) || value === undefined ? [] : [[name, value] as const],
    ),
  )
}

/** Returns the names of environment variables that have changed. */
function changesOf(before: ReadonlyMap<string, string>): string[] {
  const now = environmentNow()
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name))
}
