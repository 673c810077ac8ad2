import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

// Runs in Node for Windows: drives each command of an installation, and writes a report. A check that fails is wine's fault if the ability of
// the system that it needs fails without hikidashi too.

const [, , installed, report] = process.argv
const main = join(installed, 'dist', 'cli', 'main.js')
const base = fs.mkdtempSync(join(tmpdir(), 'hikidashi drive '))
const folder = join(base, '資料 docs')
const home = join(base, 'home')
const env = {
  ...process.env,
  APPDATA: join(home, 'AppData', 'Roaming'),
  LOCALAPPDATA: join(home, 'AppData', 'Local'),
  USERPROFILE: home,
}
const commandMs = 40_000

const start = (args, cwd = folder) => spawn(process.execPath, [main, ...args], { cwd, env, stdio: 'pipe' })

/** Collects what a process prints; `until` waits for a text in it. */
function listen(child) {
  const told = { out: '', err: '' }
  child.stdout.on('data', (data) => {
    told.out += data
  })
  child.stderr.on('data', (data) => {
    told.err += data
  })
  const until = async (pattern) => {
    for (const end = Date.now() + commandMs; Date.now() < end; await sleep(20))
      if (pattern.test(told.out + told.err)) return told.out + told.err
    throw new Error(`never told ${pattern}: ${told.out}${told.err}`)
  }
  return { told, until }
}

/** Runs a command to its end, and requires its output to match. */
async function expectCommand(args, pattern, code = 0) {
  const child = start(args)
  const { told } = listen(child)
  child.stdin.end()
  const timer = setTimeout(() => child.kill(), commandMs)
  const [ended] = await once(child, 'close')
  clearTimeout(timer)
  if (ended !== code || !pattern.test(told.out + told.err))
    throw new Error(`${args.join(' ')}: exit code ${ended}, wanted ${code} and ${pattern}\n${told.out}${told.err}`)
  return told.out
}

/** Sends a body to a server of this machine, and returns the answer. */
async function post(url, body) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const sent = http.request(url, { method: 'POST', headers, agent: false, timeout: commandMs })
  sent.end(body)
  const [answer] = await once(sent, 'response')
  return Buffer.concat(await answer.toArray()).toString()
}

const request = (id, method, params = {}) => `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`
const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'drive', version: '1' } }

/** Abilities of the system, tried without hikidashi. */
const probes = {
  'processes with pipes': async () => {
    const child = spawn(process.execPath, ['-p', '6*7'], { stdio: 'pipe' })
    await listen(child).until(/42/)
  },
  'servers on the loopback interface': async () => {
    const server = http.createServer((_, answer) => answer.end('42')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    await post(`http://127.0.0.1:${server.address().port}`, '')
    server.close()
  },
  'watches of a tree': async () => {
    const at = fs.mkdtempSync(join(base, 'watch'))
    const watcher = fs.watch(at, { recursive: true })
    const changed = once(watcher, 'change', { signal: AbortSignal.timeout(5000) })
    await sleep(100)
    fs.writeFileSync(join(at, 'a'), '')
    await changed
    watcher.close()
  },
  'native parts': async () => {
    process.dlopen({ exports: {} }, join(installed, 'dist', 'vendor', 'sqlite-win32-x64.node'))
  },
}
const [pipes, loopback, watches, native] = Object.keys(probes)

const fileUri = (name) => pathToFileURL(join(folder, name)).href
const checks = [
  ['--version', [pipes], () => expectCommand(['--version'], /^\d+\.\d+\.\d+\r?\n$/)],
  ['ls', [pipes], () => expectCommand(['ls', fileUri('')], /file:\/\/\/[A-Z]:\/.*a%20b\.md/)],
  ['tree', [pipes], () => expectCommand(['tree'], /inner/)],
  ['read', [pipes], () => expectCommand(['read', 'a b.md'], /walrus/)],
  ['read by a URI', [pipes], () => expectCommand(['read', fileUri('a b.md')], /walrus/)],
  [
    'read by a URI as VS Code writes it',
    [pipes],
    () =>
      expectCommand(
        ['read', fileUri('a b.md').replace(/\/([A-Z]):/, (_, drive) => `/${drive.toLowerCase()}%3A`)],
        /walrus/,
      ),
  ],
  [
    'a backslash, a stream or a final dot in a URI is absent',
    [pipes],
    async () => {
      for (const name of ['inner%5Cdeep.md', 'a%20b.md::$DATA', 'a%20b.md.', 'a%20b.md%20', 'NUL'])
        await expectCommand(
          ['read', `${fileUri('')}${name}`.replace(/(?<!:\/)\/\//, '/')],
          /not found|nothing|no resource|invalid|not allowed/i,
          4,
        )
    },
  ],
  ['search', [pipes, native], () => expectCommand(['search', 'walrus'], /a%20b\.md|a b\.md/)],
  ['pack', [pipes, native], () => expectCommand(['pack', 'walrus', '--budget', '2000'], /walrus/)],
  ['documents', [pipes], () => expectCommand(['read', `${fileUri('page.html')}?as=markdown`], /# Heading/)],
  ['why', [pipes], () => expectCommand(['why', 'a b.md'], /a b\.md|a%20b\.md/)],
  ['add', [pipes], () => expectCommand(['add', 'cursor'], /hikidashi/i)],
  ['hosts', [pipes], () => expectCommand(['hosts'], /Cursor/i)],
  [
    'serve over stdio',
    [pipes],
    async () => {
      const child = start(['serve', '.'])
      const { until } = listen(child)
      child.stdin.write(request(1, 'initialize', initialize))
      await until(/"id":1/)
      child.stdin.write(request(2, 'resources/read', { uri: fileUri('a b.md') }))
      await until(/walrus/)
      child.stdin.end()
      await once(child, 'exit')
    },
  ],
  [
    'serve over HTTP',
    [pipes, loopback],
    async () => {
      const child = start(['serve', '.', '--http', '0'])
      const [, url] =
        /(http:\/\/127\.0\.0\.1:\d+\/mcp)/.exec(await listen(child).until(/http:\/\/127\.0\.0\.1:\d+\/mcp/)) ?? []
      const text = await post(url, request(1, 'initialize', initialize))
      child.kill()
      if (!text.includes('protocolVersion')) throw new Error(text)
    },
  ],
  [
    'watch',
    [pipes, watches],
    async () => {
      const child = start(['watch'])
      const { until } = listen(child)
      // The watch begins at a time that nothing tells, so the file is changed until it does.
      const writing = setInterval(() => fs.appendFileSync(join(folder, 'inner', 'deep.md'), 'more\n'), 300)
      await until(/deep\.md/).finally(() => clearInterval(writing))
      child.kill()
    },
  ],
  ['init', [pipes], () => expectCommand(['init'], /hikidashi\.json/)],
  ['check', [pipes], () => expectCommand(['check'], /./)],
  [
    'SQLite',
    [pipes, native],
    async () => {
      fs.copyFileSync(join(home, 'hikidashi.json'), join(folder, 'hikidashi.json'))
      await expectCommand(['read', 'sqlite://animals/animals/rows/1', '--config', 'hikidashi.json'], /walrus/)
    },
  ],
  ['token', [pipes], () => expectCommand(['token', '--help'], /tokens/)],
  ['doctor', [pipes], () => expectCommand(['doctor', '--config', 'hikidashi.json'], /./)],
]

fs.mkdirSync(join(folder, 'inner'), { recursive: true })
fs.mkdirSync(join(home, '.cursor'), { recursive: true })
fs.writeFileSync(join(folder, 'a b.md'), '# A\r\n\r\nThe walrus.\r\n')
fs.writeFileSync(join(folder, 'inner', 'deep.md'), 'deep\n')
fs.writeFileSync(join(folder, 'page.html'), '<h1>Heading</h1><p>text</p>')
const mounts = { 'sqlite://animals': { provider: 'sqlite', file: join(folder, 'animals.db'), rows: true } }
fs.writeFileSync(join(home, 'hikidashi.json'), JSON.stringify({ mounts }))
const { DatabaseSync } = await import('node:sqlite')
const database = new DatabaseSync(join(folder, 'animals.db'))
database.exec("create table animals (id integer primary key, name text); insert into animals values (1, 'walrus')")
database.close()

const failing = new Map()
for (const [name, probe] of Object.entries(probes))
  await probe().catch((error) => failing.set(name, `${name} do not work (${String(error.message).slice(0, 200)})`))
const results = []
for (const [name, needs, run] of checks) {
  const found = { name }
  try {
    await run()
  } catch (error) {
    found.fault = String(error.message).slice(0, 2000)
    const missing = needs.find((need) => failing.has(need))
    if (missing !== undefined) found.wine = failing.get(missing)
  }
  results.push(found)
  fs.writeFileSync(report, JSON.stringify(results, undefined, 2))
}
fs.rmSync(base, { recursive: true, force: true, maxRetries: 3 })
process.exit(0)
