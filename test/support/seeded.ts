import { seedVariable } from './again.ts'

// Before each file of tests: gives properties of fast-check the seed of a run that is to be repeated.
const seed = process.env[seedVariable]
if (seed !== undefined) {
  const { configureGlobal } = await import('fast-check')
  configureGlobal({ seed: Number(seed) })
}
