import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import type { Keys } from './s3-signature.ts'

const run = promisify(execFile)
const fsid = '5a0f0b0e-1111-4222-8333-444455556666'
const programs = ['ceph', 'ceph-authtool', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw', 'radosgw-admin']

/** Whether Ceph with an object gateway is installed, and the advice if it is not. */
export const hasCeph = programs.every((name) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name))),
)
export const cephReason = 'there is no Ceph; on Debian: apt-get install ceph-mon ceph-osd ceph-common radosgw'

/** A Ceph cluster for a test: one monitor, one store in memory, one gateway that speaks S3. */
export interface Ceph {
  readonly url: string
  readonly keys: Keys
  readonly gateway: {
    /** The id of its process, with which tests stop, freeze and continue it. */
    readonly pid: number
    stop(): Promise<void>
    /** Starts it again on the same port. */
    start(): Promise<void>
  }
  admin(...args: readonly string[]): Promise<string>
  close(): Promise<void>
}

/** Maximum time of one step of the start, in milliseconds, on slow machines. */
const patience = 120_000

export function startCeph(): Promise<Ceph> {
  return trying(tryCeph)
}

/** Tries three times, because another process may take a port before it is used. */
async function trying<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === 3) throw error
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
}

async function tryCeph(): Promise<Ceph> {
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-ceph-'))
  const [monitor, port] = [await freePort(), await freePort()]
  const conf = join(folder, 'ceph.conf')
  const keyring = join(folder, 'keyring')
  const children = new Set<ChildProcess>()
  const end = (child: ChildProcess) => ended(child, 'SIGKILL').then(() => children.delete(child))
  const launch = (program: string, ...args: readonly string[]) => {
    const child = spawn(program, ['-c', conf, ...args, '-f'], { stdio: 'ignore' })
    children.add(child)
    // It ends with this process.
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.removeListener('exit', kill))
    return child
  }
  const call = async (program: string, ...args: readonly string[]) =>
    (await run(program, args, { timeout: patience, killSignal: 'SIGKILL', env: { ...process.env, CEPH_CONF: conf } }))
      .stdout
  const close = async () => {
    await Promise.all([...children].map(end))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  const url = `http://127.0.0.1:${port}`
  const keys = { accessKeyId: 'AKIDCEPH', secretAccessKey: 'canary-secret-of-ceph' }
  const startGateway = async () => {
    const child = launch('radosgw', '-n', 'client.rgw.a')
    await answers(url, child)
    return child
  }
  try {
    for (const name of ['mon', 'osd', 'rgw']) await mkdir(join(folder, name))
    await writeFile(conf, configuration(folder, monitor, port))
    await call('ceph-authtool', '--create-keyring', keyring, '--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *')
    const caps = ['mon', 'osd', 'mgr'].flatMap((name) => ['--cap', name, 'allow *'])
    await call('ceph-authtool', keyring, '--gen-key', '-n', 'client.admin', ...caps)
    const map = join(folder, 'monmap')
    const at = `[v1:127.0.0.1:${monitor}]`
    await call('monmaptool', '--create', '--clobber', '--fsid', fsid, '--addv', 'a', at, map)
    await call('ceph-mon', '-c', conf, '-i', 'a', '--mkfs', '--monmap', map, '--keyring', keyring)
    launch('ceph-mon', '-i', 'a')
    await call('ceph', '-c', conf, 'osd', 'create')
    await call('ceph-osd', '-c', conf, '-i', '0', '--mkfs', '--osd-uuid', fsid)
    launch('ceph-osd', '-i', '0')
    let gateway = await startGateway()
    const admin = (...args: readonly string[]) => call('radosgw-admin', '-c', conf, ...args)
    const user = ['--uid=test', '--display-name=test', `--access-key=${keys.accessKeyId}`]
    await admin('user', 'create', ...user, `--secret-key=${keys.secretAccessKey}`)
    return {
      ...{ url, keys, admin, close },
      gateway: {
        get pid() {
          return gateway.pid as number
        },
        stop: async () => void (await end(gateway)),
        start: async () => {
          gateway = await trying(startGateway)
        },
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill(signal)
  await gone
}

/** Waits until the gateway answers. */
async function answers(url: string, child: ChildProcess): Promise<void> {
  const until = Date.now() + patience
  while (Date.now() < until) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`radosgw has ended (${child.exitCode})`)
    const isThere = await fetch(url, { signal: AbortSignal.timeout(2000) }).then(
      (response) => response.ok,
      () => false,
    )
    if (isThere) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('radosgw does not answer')
}

/** Returns a free port. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

function configuration(folder: string, monitor: number, port: number): string {
  return `[global]
fsid = ${fsid}
auth cluster required = none
auth service required = none
auth client required = none
mon initial members = a
mon host = v1:127.0.0.1:${monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr2 = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
run dir = ${folder}
admin socket = ${folder}/$name.asok
pid file =
log file = ${folder}/$name.log
crash dir = ${folder}
mon data = ${folder}/mon
osd data = ${folder}/osd
keyring = ${folder}/keyring
[client.rgw.a]
rgw data = ${folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:${port} tcp_nodelay=1
rgw thread pool size = 32
`
}
