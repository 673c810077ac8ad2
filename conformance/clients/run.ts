import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, clients } from './declared.ts'
import {
  type Expected,
  exactly,
  exactlyThese,
  including,
  judgeSession,
  matching,
  type Outcome,
  someOf,
} from './judge.ts'
import { createProject, initialise, type Project, paths, picture, projectName, rareWord, textOf } from './project.ts'
import { hikidashi, readAudit, serveOverHttp } from './served.ts'
import type { Plan, Result, Transport } from './steps.ts'
import { readTruth, type Truth, uriOf } from './truth.ts'

/** Usual number of source files of the project. */
const usualModules = 200

/** Time-out of one session, in milliseconds. */
const sessionTimeoutMs = 300_000

const address = `file:///${projectName}/`

/** Runs the sessions of the clients, one after the other. Calls `tell` with each outcome as soon as it is known. */
export async function runClients(
  node: string,
  tell: (outcome: Outcome) => void,
  wanted: readonly Client[] = clients,
): Promise<readonly Outcome[]> {
  const parent = await mkdtemp(join(tmpdir(), 'hikidashi-clients-'))
  try {
    const outcomes: Outcome[] = []
    for (const modules of new Set(wanted.map((client) => client.modules ?? usualModules))) {
      const place = join(parent, String(modules))
      const original = await createProject(join(place, 'original'), modules)
      const { config, env, project } = await copyOf(original, join(place, 'truth'))
      const truth = await readTruth(project, config, env)
      for (const client of wanted.filter((one) => (one.modules ?? usualModules) === modules))
        for (const transport of client.transports) {
          const copy = await copyOf(original, join(place, String(outcomes.length)))
          const outcome = await runOne(node, client, transport, copy, truth)
          tell(outcome)
          outcomes.push(outcome)
        }
    }
    return outcomes
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

/** A copy of the project, with the configuration that `init` writes and a separate home directory. */
interface Copy {
  readonly project: Project
  readonly config: string
  readonly audit: string
  readonly home: string
  readonly env: Record<string, string>
}

async function copyOf(original: Project, place: string): Promise<Copy> {
  const [folder, home, audit] = [join(place, projectName), join(place, 'home'), join(place, 'audit.jsonl')]
  await mkdir(home, { recursive: true })
  await cp(original.folder, folder, { recursive: true })
  const project = { ...original, folder }
  // Use no settings of this machine's user, and disable the telemetry of the clients.
  const env = { PATH: process.env.PATH ?? '', HOME: home, LANG: 'C.UTF-8', MCP_USE_ANONYMIZED_TELEMETRY: 'false' }
  return { project, home, audit, env, config: await initialise(project, { hikidashi, env, audit }) }
}

async function runOne(
  node: string,
  client: Client,
  transport: Transport,
  { project, config, audit, home, env }: Copy,
  truth: Truth,
): Promise<Outcome> {
  const served = transport === 'http' ? await serveOverHttp(config, env) : undefined
  try {
    const plan = planFor(transport, served?.url ?? '', project, config, home)
    const { code, result, errors } = await runSession(node, client.session, plan, env)
    const records = await readAudit(audit)
    const expected = {
      ...expectedOf(plan, truth),
      ...(client.lists === undefined ? {} : { list: someOf(truth.resources) }),
    }
    const outcome = judgeSession({ client, transport, code }, result, { expected, audit: records })
    return code === 0 ? outcome : { ...outcome, faults: [...outcome.faults, errors.trim().slice(-500)] }
  } finally {
    await served?.close()
  }
}

function planFor(transport: Transport, url: string, project: Project, config: string, home: string): Plan {
  return {
    transport,
    url,
    home,
    command: process.execPath,
    args: [hikidashi, 'serve', '--config', config, '--stdio', '--log-level', 'error'],
    hikidashi,
    config,
    uris: {
      text: uriOf(address, paths.text),
      japanese: uriOf(address, paths.japanese),
      blob: uriOf(address, paths.blob),
      absent: `${address}no/such/file.md`,
    },
    expanded: { template: `${address}{+path}`, path: paths.module },
    word: rareWord,
    searchTemplate: `search://${projectName}{?q,limit,mount,mime,since,minPriority,audience,path,after,fresh,as}`,
    watched: { uri: uriOf(address, paths.watched), file: join(project.folder, paths.watched), text: '# Changed\n' },
    completion: { template: `${address}{+path}`, name: 'path', value: paths.module.slice(0, -3) },
    prompt: { name: 'review', arguments: { module: 'tea.ts' } },
  }
}

function expectedOf({ completion, expanded, searchTemplate, watched }: Plan, truth: Truth): Expected {
  const lists = exactlyThese(truth.templates)
  const found = including(uriOf(address, paths.rare))
  return {
    list: exactlyThese(truth.resources),
    templates: (value) =>
      lists(value) ??
      [expanded.template, completion.template, searchTemplate]
        .map((name) => including(name)(value))
        .find((fault) => fault !== undefined),
    text: exactly(textOf(paths.text)),
    japanese: exactly(textOf(paths.japanese)),
    blob: exactly(picture.toString('base64')),
    expanded: exactly(textOf(paths.module)),
    absent: matching(/not found/i),
    searchTool: found,
    searchTemplate: found,
    subscribe: exactly(watched.uri),
    completion: exactlyThese([paths.module]),
    prompts: exactlyThese(truth.prompts),
    prompt: matching(/^Review tea\.ts for mistakes\.\s*$/),
  }
}

/** Runs the file of a session in a separate process, on a Node that strips the types of TypeScript. */
function runSession(
  node: string,
  file: string,
  plan: Plan,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly code: number | null; readonly result: Result; readonly errors: string }> {
  return new Promise((resolve, reject) => {
    const script = fileURLToPath(new URL(file, import.meta.url))
    const child = spawn(node, ['--no-warnings', script, JSON.stringify(plan)], {
      env,
      cwd: plan.home,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: sessionTimeoutMs,
    })
    let [output, errors] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, errors, result: resultIn(output) }))
  })
}

/** Parses the result, which is the last line of the output, because some clients write to standard output too. */
function resultIn(output: string): Result {
  try {
    return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as Result
  } catch {
    return {}
  }
}
