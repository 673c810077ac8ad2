import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * `npm start`: builds, and then serves in this process. The arguments are those of `serve`. `exec` replaces the shell that npm starts
 * by this process, so that signals to npm reach it. If the parent process is killed, this process ends too.
 */
const root = resolve(import.meta.dirname, '..')
const parentCheckMs = 500
const progressMs = 250

/** Ends this process when its parent ends. Node has no event for that, so a timer checks whether the id of the parent has changed. */
function endWithParent() {
  const { ppid } = process
  const timer = setInterval(() => {
    if (process.ppid === ppid) return
    clearInterval(timer)
    // The server shuts down on SIGTERM as on Ctrl-C.
    process.kill(process.pid, 'SIGTERM')
  }, parentCheckMs)
  timer.unref()
}

/**
 * Shows the progress of the build: on a terminal in a line that is overwritten, elsewhere in one line at the start.
 *
 * @param {NodeJS.WriteStream} stream
 */
function tellBuilding(stream) {
  const begun = Date.now()
  let what = '1 of 2'
  if (!stream.isTTY || process.env.TERM === 'dumb') {
    stream.write('Building hikidashi, some ten seconds…\n')
    return { set: () => {}, end: () => {} }
  }
  const show = () => {
    const seconds = Math.round((Date.now() - begun) / 1000)
    stream.write(`\rBuilding hikidashi, some ten seconds: ${what}, ${seconds} s …\u001b[K`)
  }
  show()
  const timer = setInterval(show, progressMs)
  return {
    /** @param {unknown} told */
    set: (told) => {
      what = String(told)
      show()
    },
    end: () => {
      clearInterval(timer)
      stream.write('\r\u001b[K')
    },
  }
}

/** @returns {Promise<number>} The exit code. */
function build() {
  const tsx = createRequire(import.meta.url).resolve('tsx/cli')
  const child = spawn(process.execPath, [tsx, join(root, 'scripts/build.ts')], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  const progress = tellBuilding(process.stderr)
  child.on('message', progress.set)
  const end = (signal) => {
    child.kill(signal)
    process.exit(1)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.once(signal, end)
  return new Promise((done) => {
    child.once('close', progress.end)
    child.once('error', () => done(1))
    child.once('exit', (code) => {
      for (const signal of signals) process.off(signal, end)
      done(code ?? 1)
    })
  })
}

endWithParent()
const code = await build()
if (code !== 0) process.exit(code)
const main = join(root, 'dist/cli/main.js')
process.argv = [process.execPath, main, 'serve', ...process.argv.slice(2)]
await import(pathToFileURL(main).href)
