import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createLiveness } from '../../src/server/admission/connections.ts'
import { pause, until } from '../support/live.ts'

describe.runIf(process.platform === 'linux')('a connection with a peer that does not read', () => {
  const open = async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => {})
    const socket = await accepted
    socket.on('error', () => {})
    const close = () => {
      client.destroy()
      socket.destroy()
      server.close()
    }
    return { client, socket, close }
  }

  test('is cut, while a connection with a peer that reads is kept', async () => {
    const liveness = createLiveness(50, 3)
    const stuck = await open()
    const alive = await open()
    stuck.client.pause()
    alive.client.on('data', () => {})
    liveness.watch(stuck.socket)
    liveness.watch(alive.socket)
    const chunk = Buffer.alloc(256 * 1024)
    // More than the kernel takes for a peer that does not read.
    for (let i = 0; i < 64; i++) stuck.socket.write(chunk)
    const beat = setInterval(() => alive.socket.write('.'), 20)
    await until(() => stuck.socket.destroyed)
    await pause(300)
    expect(alive.socket.destroyed).toBe(false)
    clearInterval(beat)
    stuck.close()
    alive.close()
    liveness.close()
  })

  test('is cut even if more is written to it all the time', async () => {
    const liveness = createLiveness(50, 3)
    const stuck = await open()
    stuck.client.pause()
    // More than the client's side takes, and less than ours.
    for (let i = 0; i < 8; i++) stuck.socket.write(Buffer.alloc(64 * 1024))
    liveness.watch(stuck.socket)
    const beat = setInterval(() => stuck.socket.write(': still here\n\n'), 20)
    await until(() => stuck.socket.destroyed)
    clearInterval(beat)
    stuck.close()
    liveness.close()
  })

  test('is kept if nothing is waiting to be read', async () => {
    const liveness = createLiveness(20, 2)
    const idle = await open()
    idle.client.pause()
    liveness.watch(idle.socket)
    await pause(300)
    expect(idle.socket.destroyed).toBe(false)
    idle.close()
    liveness.close()
  })
})
