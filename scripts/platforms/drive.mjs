import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

// Runs in Node, for Linux or for Windows, in Bun or in Deno: drives each command of an installation in that runtime, and writes a report. A check
// that fails is the fault of the system, such as wine, if the ability that it needs fails without hikidashi too.

const [, , installed, report] = process.argv
const main = join(installed, 'dist', 'cli', 'main.js')
const base = fs.mkdtempSync(join(tmpdir(), 'hikidashi drive '))
const folder = join(base, '資料 docs')
const home = join(base, 'home')
const isWindows = process.platform === 'win32'
const runtime = process.versions.deno === undefined ? [] : ['run', '--allow-all', '--no-config', '--quiet']
const env = {
  ...process.env,
  APPDATA: join(home, 'AppData', 'Roaming'),
  LOCALAPPDATA: join(home, 'AppData', 'Local'),
  USERPROFILE: home,
  HOME: home,
  XDG_STATE_HOME: join(home, 'state'),
  XDG_CONFIG_HOME: join(home, '.config'),
  XDG_CACHE_HOME: join(home, '.cache'),
}
const commandMs = 40_000

const start = (args, cwd = folder) => spawn(process.execPath, [...runtime, main, ...args], { cwd, env, stdio: 'pipe' })

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

const longName = '長い'.repeat(20) + 'x'.repeat(80)
const farText = 'a far walrus\n'
function makeLong(at) {
  fs.mkdirSync(join(at, longName, longName), { recursive: true })
  fs.writeFileSync(join(at, longName, longName, 'far.md'), farText)
}

/** Links a folder: on Windows by a junction, which needs no right. */
const link = (target, at) => fs.symlinkSync(target, at, isWindows ? 'junction' : 'dir')

/** Renames or removes, as an editor does: Windows refuses that while somebody reads, so it is tried until it succeeds. */
async function whenFree(change) {
  for (const end = Date.now() + commandMs; ; await sleep(20))
    try {
      return change()
    } catch (error) {
      if (Date.now() > end) throw error
    }
}

/** Reads resources until the text of one matches. */
async function readUntil(client, uri, pattern) {
  let text = ''
  for (const end = Date.now() + commandMs; Date.now() < end; await sleep(50)) {
    text = await client.ask('resources/read', { uri })
    if (pattern.test(text)) return text
  }
  throw new Error(`${uri} never has ${pattern}: ${text}`)
}

/** A server over stdio, asked one request after the other. */
async function openServer(args) {
  const child = start(['serve', ...args])
  const { told, until } = listen(child)
  let last = 0
  const ask = async (method, params) => {
    const id = ++last
    child.stdin.write(request(id, method, params))
    await until(new RegExp(`"id":${id}[,}]`))
    return told.out.split('\n').find((line) => line.includes(`"id":${id},`) || line.includes(`"id":${id}}`)) ?? ''
  }
  await ask('initialize', initialize)
  const close = async () => {
    child.stdin.end()
    await once(child, 'exit')
  }
  return { ask, close }
}

/** Requires that a folder can be served, and that its list has a text. */
async function expectListed(served, text) {
  const client = await openServer([served])
  const listed = await client.ask('resources/list', {})
  await client.close()
  if (!listed.includes(text)) throw new Error(`${served}: ${listed}`)
}

/** Requires that resources are absent, however they are asked for. */
async function expectAbsent(uris) {
  for (const uri of uris) await expectCommand(['read', uri], /does not exist|not found|invalid|not allowed/i, 4)
}

/** Abilities of the system, tried without hikidashi. */
const probes = {
  'processes with pipes': async () => {
    const script = join(base, 'probe.mjs')
    fs.writeFileSync(script, 'console.log(6 * 7)')
    const child = spawn(process.execPath, [...runtime, script], { stdio: 'pipe' })
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
  git: async () => {
    const child = spawn('git', ['--version'], { stdio: 'pipe' })
    await Promise.race([
      listen(child).until(/git version/),
      once(child, 'error').then(([error]) => Promise.reject(error)),
    ])
  },
  links: async () => {
    link(base, join(base, 'linked'))
    if (!fs.readdirSync(join(base, 'linked')).includes('probe.mjs')) throw new Error('a link shows nothing')
  },
  'paths over 260 characters': async () => {
    makeLong(join(base, 'long'))
    const far = join(base, 'long', longName, longName, 'far.md')
    if (fs.readFileSync(far, 'utf8') !== farText) throw new Error('not readable')
    fs.realpathSync.native(far)
  },
  'native parts': async () => {
    process.dlopen(
      { exports: {} },
      join(installed, 'dist', 'vendor', `sqlite-${process.platform}-${process.arch}.node`),
    )
  },
}
const [pipes, loopback, watches, git, links, longPaths, native] = Object.keys(probes)

/** Checks of abilities that only Windows has. */
function windowsChecks() {
  const below = (name) => `${fileUri('')}/${name}`.replace(/(?<!:\/?)\/\/+/g, '/')
  return [
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
      () =>
        expectAbsent(
          ['inner%5Cdeep.md', 'a%20b.md::$DATA', 'a%20b.md.', 'a%20b.md%20', 'inner/deep.md%3Ax'].map(below),
        ),
    ],
    [
      'names of devices are absent',
      [pipes],
      () => expectAbsent(['NUL', 'con', 'aux.md', 'COM1', 'lpt9.txt', 'CONIN$', 'inner/nul.md'].map(below)),
    ],
    [
      'a folder named with another case, slashes, or the prefix for long paths',
      [pipes],
      async () => {
        const drive = folder[0]
        const names = [folder.replaceAll('\\', '/'), `\\\\?\\${folder}`, drive.toLowerCase() + folder.slice(1)]
        for (const name of names) await expectListed(name, 'a%20b.md')
      },
    ],
    [
      'a share (UNC) that is not there has a clear error',
      [pipes],
      () => expectCommand(['serve', '\\\\127.0.0.1\\no-share\\docs'], /no-share\\docs/, 1),
    ],
    [
      'a folder of another drive is served under its drive',
      [pipes],
      () => expectListed(join(installed, 'dist', 'store'), 'file:///Z:/'),
    ],
  ]
}

const fileUri = (name) => pathToFileURL(join(folder, name)).href
const checks = [
  ['--version', [pipes], () => expectCommand(['--version'], /^\d+\.\d+\.\d+\r?\n$/)],
  [
    'ls',
    [pipes],
    () => expectCommand(['ls', fileUri('')], isWindows ? /file:\/\/\/[A-Z]:\/.*a%20b\.md/ : /file:\/\/\/.*a%20b\.md/),
  ],
  ['tree', [pipes], () => expectCommand(['tree'], /inner/)],
  ['read', [pipes], () => expectCommand(['read', 'a b.md'], /walrus/)],
  ['read by a URI', [pipes], () => expectCommand(['read', fileUri('a b.md')], /walrus/)],
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
  [
    'git: files, commits',
    [pipes, git],
    async () => {
      const repository = join(base, 'repository')
      fs.mkdirSync(repository)
      fs.writeFileSync(join(repository, 'kept.md'), 'kept walrus\n')
      const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.org']
      for (const args of [
        ['init', '-q'],
        ['add', '.'],
        [...author, 'commit', '-qm', 'first'],
      ]) {
        const child = spawn('git', args, { cwd: repository, env, stdio: 'ignore' })
        await once(child, 'exit')
      }
      const mounts = { 'git://kept': { provider: 'git', repository } }
      fs.writeFileSync(join(home, 'git.json'), JSON.stringify({ mounts }))
      await expectCommand(['read', 'git://kept/HEAD/kept.md', '--config', join(home, 'git.json')], /kept walrus/)
    },
  ],
  [
    'a file with CRLF: its bytes are unchanged, its lines end without CR',
    [pipes],
    async () => {
      const whole = await expectCommand(['read', 'a b.md'], /walrus/)
      if (whole !== '# A\r\n\r\nThe walrus.\r\n') throw new Error(JSON.stringify(whole))
      await expectCommand(['grep', 'a b.md', 'walrus\\.$'], /3/)
    },
  ],
  [
    'a file replaced by a rename while it is served',
    [pipes],
    async () => {
      const client = await openServer(['.'])
      const uri = fileUri('replaced.md')
      for (let round = 0; round < 5; round++) {
        fs.writeFileSync(join(base, 'fresh'), `round ${round} `.repeat(50_000))
        const reading = client.ask('resources/read', { uri })
        await whenFree(() => fs.renameSync(join(base, 'fresh'), join(folder, 'replaced.md')))
        await reading
        await readUntil(client, uri, new RegExp(`round ${round} `))
      }
      await client.close()
    },
  ],
  [
    'a folder renamed and deleted while it is served and watched',
    [pipes, watches],
    async () => {
      const client = await openServer(['.'])
      fs.mkdirSync(join(folder, 'old'))
      fs.writeFileSync(join(folder, 'old', 'moved.md'), 'moved walrus')
      await client.ask('resources/subscribe', { uri: fileUri('old/moved.md') })
      await readUntil(client, fileUri('old/moved.md'), /moved walrus/)
      await whenFree(() => fs.renameSync(join(folder, 'old'), join(folder, 'new')))
      await readUntil(client, fileUri('new/moved.md'), /moved walrus/)
      await whenFree(() => fs.rmSync(join(folder, 'new'), { recursive: true }))
      await readUntil(client, fileUri('new/moved.md'), /"error"/)
      await client.close()
    },
  ],
  [
    'links and junctions out of the folder are absent',
    [pipes, links],
    async () => {
      fs.mkdirSync(join(base, 'outside'))
      fs.writeFileSync(join(base, 'outside', 'secret.md'), 'secret')
      link(join(base, 'outside'), join(folder, 'out'))
      await expectAbsent([fileUri('out/secret.md'), 'out/secret.md'])
      const listed = await expectCommand(['tree'], /inner/)
      if (/secret/.test(listed)) throw new Error(listed)
    },
  ],
  [
    'paths over 260 characters',
    [pipes, longPaths],
    async () => {
      makeLong(join(folder, 'far'))
      try {
        await expectCommand(['read', fileUri(`far/${longName}/${longName}/far.md`)], /a far walrus/)
        await expectCommand(['ls', fileUri(''), '--recursive'], /far\.md/)
      } finally {
        fs.rmSync(join(folder, 'far'), { recursive: true })
      }
    },
  ],
  ...(isWindows ? windowsChecks() : []),
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
const makeDatabase = async (file) => {
  if (process.versions.bun === undefined) return new (await import('node:sqlite')).DatabaseSync(file)
  return new (await import('bun:sqlite')).Database(file)
}
const database = await makeDatabase(join(folder, 'animals.db'))
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
