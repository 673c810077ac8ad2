import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { HttpService } from '../../src/server/index.ts'
import { type Era, type EraClient, type EraNotification, eras, type Place } from '../support/era-clients.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { until } from '../support/live.ts'
import { sampleAddress, serveSample, stdioCommand, stillCommand } from '../support/served-folder.ts'
import { someOf } from '../support/volume.ts'

// Each client starts a process. These tests wait long rather than fail where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
const patience = 30_000
const updated = 'notifications/resources/updated'
const listed = 'notifications/resources/list_changed'

let folder: Folder
const services: HttpService[] = []

beforeAll(() => {
  folder = createFolder()
  folder.write({ 'readme.md': '# Sample\n' })
})

afterAll(async () => {
  await Promise.all(services.map((service) => service.close()))
  folder.remove()
})

interface Connection {
  readonly client: EraClient
  readonly heard: readonly EraNotification[]
  /** What was told as changed, by URI. */
  told(): readonly unknown[]
  forget(): void
  /** Ends the server, as the system or an operator does. */
  shutDown(): Promise<void>
}

const transports: readonly (readonly [name: string, open: () => Promise<[Place, HttpService | undefined]>])[] = [
  ['stdio', async () => [stdioCommand(folder), undefined]],
  [
    'HTTP',
    async () => {
      const service = await serveSample(folder)
      services.push(service)
      return [{ url: service.url }, service]
    },
  ],
]

async function connectTo(era: Era, open: (typeof transports)[number][1]): Promise<Connection> {
  const [place, service] = await open()
  const { client, pid } = await era.connect(place)
  const heard: EraNotification[] = []
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification)
  return {
    client,
    heard,
    told: () => heard.filter(({ method }) => method === updated).map(({ params }) => params?.uri),
    forget: () => void heard.splice(0),
    shutDown: async () => {
      if (service !== undefined) await service.close()
      else if (pid !== undefined) process.kill(pid, 'SIGTERM')
    },
  }
}

describe.each(eras)('the client $name', (era) => {
  describe.each(someOf(`changes ${era.name}`, transports))('over %s', (transport, open) => {
    let connection: Connection
    const slug = `${era.name.replace(/\W+/g, '-')}-${transport}`
    const name = (part: string) => `${slug}/${part}`
    const uriOf = (part: string) => `${sampleAddress}/${name(part)}`
    const textOf = async (uri: string) => {
      const { contents } = await connection.client.readResource({ uri })
      return contents.map((content) => (content as { readonly text?: string }).text)
    }

    beforeAll(async () => {
      folder.write({ [name('a.txt')]: 'first\n', [name('b.txt')]: 'first\n' })
      connection = await connectTo(era, open)
    })

    afterAll(async () => {
      await connection.client.close()
    })

    /** Listens to a file and the list, in the way of the era. The answer takes it back. */
    const listenTo = async (uri: string): Promise<() => Promise<unknown>> => {
      const { client } = connection
      if (era.revision !== '2026-07-28') {
        await client.subscribeResource({ uri })
        return () => client.unsubscribeResource({ uri })
      }
      const subscription = await client.listen?.({ resourceSubscriptions: [uri], resourcesListChanged: true })
      expect(subscription?.honoredFilter.resourceSubscriptions).toEqual([uri])
      return async () => subscription?.close()
    }

    test('gets capabilities that offer subscriptions and list changes', () => {
      const { resources } = connection.client.getServerCapabilities() ?? {}
      expect(resources).toEqual({ subscribe: true, listChanged: true })
    })

    test('is notified of changes and reads them, until it unsubscribes', async () => {
      const uri = uriOf('a.txt')
      const stop = await listenTo(uri)
      for (const text of ['second\n', 'third, 引き出し\n']) {
        connection.forget()
        folder.write({ [name('a.txt')]: text, [name('b.txt')]: text })
        await until(() => connection.told().length > 0, patience)
        expect(new Set(connection.told())).toEqual(new Set([uri]))
        // In the end; a file that is written in place is seen empty for a moment.
        await expect.poll(() => textOf(uri), { timeout: patience }).toEqual([text])
      }
      await stop()
      const again = await listenTo(uriOf('b.txt'))
      connection.forget()
      folder.write({ [name('a.txt')]: 'unheard\n', [name('b.txt')]: 'heard\n' })
      await until(() => connection.told().includes(uriOf('b.txt')), patience)
      expect(connection.told()).not.toContain(uri)
      await again()
    })

    test('is notified when a resource appears or disappears, and then lists the new state', async () => {
      const stop = await listenTo(uriOf('a.txt'))
      const uri = uriOf('new.txt')
      const isListed = async () => {
        const { resources } = await connection.client.listResources()
        return resources.some((resource) => resource.uri === uri)
      }
      const isTold = () => connection.heard.some(({ method }) => method === listed)
      expect(await isListed()).toBe(false)
      connection.forget()
      folder.write({ [name('new.txt')]: 'new\n' })
      await until(isTold, patience)
      expect(await isListed()).toBe(true)
      connection.forget()
      rmSync(folder.at(name('new.txt')))
      await until(isTold, patience)
      expect(await isListed()).toBe(false)
      await stop()
    })

    // The oldest clients do not say which process they have started.
    test.skipIf(/ 1\.(?:0|12)\./.test(era.name) && transport === 'stdio')(
      'notices that the server has stopped',
      async () => {
        const { client } = connection
        let isOver = false
        client.onclose = () => {
          isOver = true
        }
        if (era.revision === '2026-07-28') {
          const subscription = await client.listen?.({ resourceSubscriptions: [uriOf('a.txt')] })
          await connection.shutDown()
          expect(await subscription?.closed).toBe('graceful')
        } else {
          await client.subscribeResource({ uri: uriOf('a.txt') })
          await connection.shutDown()
        }
        // Over HTTP these clients only notice by their next request; a pipe has an end.
        if (transport === 'stdio') await until(() => isOver, patience)
        else await expect(client.readResource({ uri: uriOf('a.txt') })).rejects.toThrow()
      },
    )
  })
})

describe.each(eras)('the client $name, with sources that report no changes,', (era) => {
  test.each(['stdio', 'HTTP'])('is offered no subscriptions, and cannot subscribe, over %s', async (transport) => {
    let place: Place = stillCommand(folder)
    if (transport === 'HTTP') {
      const service = await serveSample(folder, { watch: false })
      services.push(service)
      place = { url: service.url }
    }
    const { client } = await era.connect(place)
    const uri = `${sampleAddress}/readme.md`
    expect(client.getServerCapabilities()?.resources).toEqual({})
    if (era.revision === '2026-07-28') {
      const subscription = await client.listen?.({ resourceSubscriptions: [uri], resourcesListChanged: true })
      expect(subscription?.honoredFilter).toEqual({})
    } else await expect(client.subscribeResource({ uri })).rejects.toThrow()
    expect((await client.readResource({ uri })).contents).toHaveLength(1)
    await client.close()
  })
})
