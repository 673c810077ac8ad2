import { appendFileSync } from 'node:fs'

// Records the modules of Node that are loaded when a process first writes to its standard output, and ends it.
const { write } = process.stdout
process.stdout.write = (...args) => {
  const loaded = process.moduleLoadList.filter((name) => /^NativeModule (?!internal\/)/.test(name))
  appendFileSync(
    process.env.HIKIDASHI_LOADED,
    loaded.map((name) => `${name.replace('NativeModule ', 'node:')}\n`).join(''),
  )
  write.apply(process.stdout, args)
  process.exit(0)
}
