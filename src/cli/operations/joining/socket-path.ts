import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { defaultConfigName, stateFolder } from '../../../config/state-folder.ts'
import { makePrivateFolder } from './socket.ts'

const fs = process.getBuiltinModule('node:fs')

/** The options with which a server can be shared. */
const options = new Set(['--stdio', '--strict', '--config', '--name', '--only', '--log-level', '--log-format'])
/** Those of {@link options} that take a value. */
const valued = new Set(['--config', '--name', '--only', '--log-level', '--log-format'])
/** In bytes. macOS has the shortest limit. */
const maxPathBytes = 103
/** Larger configurations are not compared. In bytes. */
const maxConfigBytes = 1024 * 1024

/**
 * Returns the path of the socket for a command line; `undefined` if its server cannot be shared. Command lines with the
 * same path serve the same.
 */
export function socketPathOf(words: readonly string[]): string | undefined {
  const folders: string[] = []
  const rest: string[] = []
  let config: string | undefined
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ''
    const [, name = '', value] = /^(--[^=]+)(?:=(.*))?$/s.exec(word) ?? []
    if (name === '' && !word.startsWith('-')) folders.push(resolve(word))
    else if (!options.has(name)) return undefined
    else if (name === '--config') config = resolve(value ?? words[++at] ?? '')
    else rest.push(name, valued.has(name) ? (value ?? words[++at] ?? '') : '')
  }
  // Node cannot limit a named pipe of Windows to its user.
  if (!rest.includes('--stdio') || process.platform === 'win32') return undefined
  const configFile = folders.length === 0 && fs.existsSync(defaultConfigName) ? resolve(defaultConfigName) : undefined
  const file = config ?? configFile
  const first = folders[0] ?? (file === undefined ? resolve('.') : dirname(file))
  try {
    // A server that a person starts at a terminal is not shared.
    if (fs.fstatSync(0).isCharacterDevice()) return undefined
    const settings = file === undefined ? [] : settingsOf(file)
    if (settings === undefined) return undefined
    const folderNames = file === undefined && folders.length === 0 ? [first] : folders
    // The given spelling counts too, because it becomes the address of the mount.
    const links = [folderNames.map((folder) => [folder, fs.realpathSync(folder)]), spelledFolder()]
    const facts = [
      programFacts(),
      rest,
      config === undefined,
      settings,
      links,
      variablesOf(common),
      programsHere(),
      rights(),
    ]
    const path = join(
      stateFolder(),
      'run',
      `${digest(fs.realpathSync(file ?? first))}-${digest(JSON.stringify(facts))}`,
    )
    return Buffer.byteLength(path) <= maxPathBytes ? path : undefined
  } catch {
    // A file or a folder is missing. The server reports that when it starts.
    return undefined
  }
}

/**
 * Returns the paths of sockets for a configuration, or for a folder without one, the newest first. Some may be stale.
 */
export function socketPathsOf(path: string): readonly string[] {
  const run = join(stateFolder(), 'run')
  try {
    const mine = fs.readdirSync(run).filter((name) => name.startsWith(`${digest(fs.realpathSync(path))}-`))
    const paths = mine.map((name) => join(run, name))
    return makePrivateFolder(run) ? paths.sort((a, b) => fs.statSync(b).mtimeMs - fs.statSync(a).mtimeMs) : []
  } catch {
    return []
  }
}

/** Another version of the program is another file. */
function programFacts(): readonly unknown[] {
  const main = fs.realpathSync(process.argv[1] ?? '')
  const { ino, mtimeMs, size } = fs.statSync(main)
  return [main, ino, mtimeMs, size, process.version, process.execPath, process.execArgv]
}

/** If the shell spells the current folder differently, URIs may have either spelling. */
function spelledFolder(): readonly string[] {
  const { PWD: shellFolder } = process.env
  const cwd = process.cwd()
  return shellFolder === undefined || shellFolder === cwd ? [] : [shellFolder, cwd]
}

/** Variables that a server may depend on without a configuration. */
const common =
  /^(?:HOME|TZ|TESSDATA_PREFIX|UV_\w+|XDG_\w+_HOME|GIT_CONFIG\w*|HIKIDASHI_\w+|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_\w+|USE_\w+))$/
/** Variables that some sources of a configuration use. */
const configured =
  /^(?:AWS|AZURE|GOOGLE|GCLOUD|CLOUDSDK|METADATA|PG|MYSQL|SSL|DISPLAY|WAYLAND|XDG|XAUTHORITY)|^(?:LOGNAME|PATH|SHELL|TERM|USER)$|_PROXY$/i

function variablesOf(pattern: RegExp): readonly unknown[] {
  return Object.entries(process.env)
    .filter(([name]) => pattern.test(name))
    .map(([name, value = '']) => [name, name === 'PATH' ? foreignFolders(value) : value])
    .sort()
}

/** The whole PATH would differ between hosts, which add folders of their own to it. */
function programsHere(): readonly unknown[] {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute)
  return ['git', 'tesseract'].map((name) => folders.find((folder) => fs.existsSync(join(folder, name))))
}

/** npm adds folders that depend on the current folder. */
function foreignFolders(path: string): readonly string[] {
  return path.split(delimiter).filter((folder) => !/[\\/]node_modules[\\/]\.bin$|[\\/]node-gyp-bin$/.test(folder))
}

/** Processes in a container or a sandbox, or with other rights, may see different files. */
function rights(): readonly unknown[] {
  const { dev, ino } = fs.statSync('/')
  const place = [process.getBuiltinModule('node:os').hostname(), dev, ino, process.getgroups?.()]
  if (process.platform !== 'linux') return place
  const spaces = ['mnt', 'net', 'pid', 'user'].map((name) => fs.readlinkSync(`/proc/self/ns/${name}`))
  const status = fs.readFileSync('/proc/self/status', 'utf8')
  return [...place, ...spaces, status.match(/^(?:Uid|Gid|CapEff|NoNewPrivs|Seccomp):.*$/gm)]
}

/**
 * Returns `undefined` for a configuration that is too large, has an audit log, or names the environment of the host.
 */
function settingsOf(file: string): readonly unknown[] | undefined {
  if (fs.statSync(file).size > maxConfigBytes) return undefined
  const text = fs.readFileSync(file, 'utf8')
  // An escape (`\u0065nv`) could hide one of these words.
  return /"env"|"audit"|\\u/.test(text) ? undefined : [fs.realpathSync(file), text, variablesOf(configured)]
}

function digest(text: string): string {
  return process.getBuiltinModule('node:crypto').createHash('sha256').update(text).digest('hex').slice(0, 12)
}
