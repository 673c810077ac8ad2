import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** The built command. */
export const hikidashi = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** A server over HTTP on a free port of this machine. */
export interface Served {
  readonly url: string
  close(): Promise<void>
}

/** Starts the built command over HTTP, and waits until it prints its URL. */
export async function serveOverHttp(config: string, env: NodeJS.ProcessEnv): Promise<Served> {
  const child = spawn(process.execPath, [hikidashi, 'serve', '--config', config, '--http', '0'], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const url = await saysWhere(child)
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        child.on('close', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}

function saysWhere(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const url = /at (http:\/\/127\.0\.0\.1:\d+\/mcp)\n/.exec(said)?.[1]
      if (url !== undefined) resolve(url)
    })
    child.on('error', reject)
    child.on('close', () => reject(new Error(`the server ended: ${said}`)))
  })
}

/** One record of the audit log; the fields are those of `docs/configuration.md`, "The audit log". */
export interface AuditRecord {
  readonly transport: string
  readonly revision?: string
  readonly verb: string
  readonly uri?: string
}

export async function readAudit(file: string): Promise<readonly AuditRecord[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditRecord)
}
