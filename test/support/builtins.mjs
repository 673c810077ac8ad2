import { appendFileSync } from 'node:fs'

// Records which of Node's own modules are loaded once a process has written something to its standard output, and ends it.
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
