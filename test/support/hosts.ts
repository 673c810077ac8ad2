import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { hostSettingsFile, openHostFile } from '../../src/cli/hosts/change.ts'
import { hosts } from '../../src/cli/hosts/table.ts'
import type { Host, HostScope, Launch, Machine } from '../../src/cli/hosts/types.ts'

/** Entries of a server over stdio and of one over HTTP, the same on every machine. */
export const started: Launch = {
  transport: 'stdio',
  command: ['/opt/node', '/opt/hikidashi/dist/cli/main.js', 'serve', { path: '/srv/日本 notes' }, '--stdio'],
  env: {},
}
export const asked: Launch = {
  transport: 'http',
  url: 'https://context.example.org/mcp',
  headers: { Authorization: ['Bearer ', { variable: 'CONTEXT_TOKEN' }], 'X-Team': ['docs'] },
}

export function hostCalled(id: string): Host {
  const host = hosts.find((other) => other.id === id)
  if (host === undefined) throw new Error(`There is no host ${id}.`)
  return host
}

/** Creates an empty home folder and project. */
export async function createPlace(): Promise<Machine & { readonly remove: () => Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'hikidashi-hosts-'))
  const [home, folder] = [join(root, 'home'), join(root, 'project')]
  await Promise.all([mkdir(home), mkdir(folder)])
  return { platform: process.platform, env: {}, home, folder, remove: () => rm(root, { recursive: true }) }
}

/** Writes the settings file of a host, and returns its path. */
export async function putFile(
  host: Host,
  place: Machine,
  content: string | Buffer | undefined,
  scope: HostScope = 'user',
) {
  const file = hostSettingsFile(host, scope, place)
  await mkdir(dirname(file), { recursive: true })
  if (content === undefined) await rm(file, { force: true })
  else await writeFile(file, content)
  await rm(`${file}.hikidashi.bak`, { force: true })
  return file
}

/** Writes the settings file of a host, and opens it. */
export async function openWith(
  host: Host,
  place: Machine,
  content: string | Buffer | undefined,
  scope: HostScope = 'user',
) {
  await putFile(host, place, content, scope)
  return openHostFile(host, scope, place)
}
