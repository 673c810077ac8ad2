// The health check of the container. Over stdio nothing listens: the process lives as long as its client.
import { readFileSync } from 'node:fs'

const [url = 'http://127.0.0.1:8787/healthz', commandFile = '/proc/1/cmdline'] = process.argv.slice(2)
const command = readFileSync(commandFile, 'utf8').split('\0')
if (!command.includes('--stdio')) {
  const { ok } = await fetch(url, { signal: AbortSignal.timeout(4000) }).catch(() => ({ ok: false }))
  if (!ok) process.exitCode = 1
}
