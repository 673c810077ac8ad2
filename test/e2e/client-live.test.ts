import { describe, expect, test } from 'vitest'
import type { ServerTarget } from '../../src/client/index.ts'
import { bundled } from '../support/bundled.ts'
import { pause, until } from '../support/live.ts'
import { hear, liveServers, open } from '../support/live-servers.ts'

const program = new URL('../fixtures/mcp/live.mjs', import.meta.url).pathname

for (const [name, serve] of Object.entries(liveServers))
  describe(`a server ${name}`, () => {
    test('notifies of the subscribed URIs, and of no others', async () => {
      const server = await serve()
      const view = await open(server.target)
      expect(view.live).toBe(true)
      const { subscription, uris, changes } = hear(view)
      await server.touch(server.uri)
      await pause(300)
      expect(await subscription.add([server.uri, server.uri])).toEqual([server.uri])
      expect(subscription.uris).toEqual([server.uri])
      await pause(100)
      expect(changes).toEqual([])
      await server.touch(server.other)
      await server.touch(server.uri)
      await until(() => changes.length > 0)
      expect(uris()).toEqual([server.uri])
      expect(changes.some(({ listed }) => listed)).toBe(false)
    })

    test('loses no notification while a subscription is added', async () => {
      const server = await serve()
      const { subscription, uris } = hear(await open(server.target))
      await subscription.add([server.uri])
      const added: string[] = []
      for (let i = 0; i < 20; i++) {
        const more = `${server.uri}${i}`
        const adding = subscription.add([more]).then((agreed) => added.push(...agreed))
        await pause(i / 2)
        const before = uris().length
        await server.touch(server.uri)
        await until(() => uris().length > before)
        await adding
      }
      expect(added).toHaveLength(20)
      expect(subscription.uris).toHaveLength(21)
      const before = uris().length
      await server.touch(added[7] ?? '')
      await until(() =>
        uris()
          .slice(before)
          .includes(added[7] ?? ''),
      )
    })

    test('notifies of a URI that was unsubscribed and subscribed again', async () => {
      const server = await serve()
      const { subscription, uris, forget } = hear(await open(server.target))
      await subscription.add([server.other])
      for (let i = 0; i < 10; i++) {
        await subscription.add([server.uri])
        subscription.remove(server.uri)
        expect(await subscription.add([server.uri])).toEqual([server.uri])
        await server.touch(server.uri)
        await until(() => uris().includes(server.uri))
        subscription.remove(server.uri)
        forget()
      }
    })

    test('notifies of changes of its list, without URIs', async () => {
      const server = await serve()
      const view = await open(server.target)
      const heard = hear(view)
      expect(await heard.subscription.addList()).toBe(true)
      await server.touchList()
      await until(() => heard.listed() > 0)
      expect(heard.uris()).toEqual([])
    })

    test('does not notify of an unsubscribed URI', async () => {
      const server = await serve()
      const view = await open(server.target)
      const [one, two] = [hear(view), hear(view)]
      await one.subscription.add([server.uri, server.other])
      await two.subscription.add([server.uri])
      one.subscription.remove(server.uri)
      await pause(100)
      await server.touch(server.uri)
      await server.touch(server.other)
      await until(() => one.changes.length > 0 && two.changes.length > 0)
      expect(one.uris()).toEqual([server.other])
      expect(two.uris()).toEqual([server.uri])
      two.subscription.close()
      one.subscription.close()
      await server.touch(server.uri)
      await pause(150)
      expect(two.uris()).toEqual([server.uri])
      expect(await two.subscription.add([server.uri])).toEqual([])
    })

    test('that restarts gets the subscriptions again, and each subscribed URI and the list are reported as changed', async () => {
      const server = await serve()
      const view = await open(server.target)
      const { subscription, uris, forget, listed } = hear(view)
      await subscription.add([server.uri, server.other])
      await subscription.addList()
      await server.stop()
      await pause(300)
      expect(uris()).toEqual([])
      await server.start()
      await until(() => uris().length >= 2, 15_000)
      expect([...new Set(uris())].sort()).toEqual([server.uri, server.other])
      expect(listed()).toBeGreaterThan(0)
      await pause(200)
      forget()
      await server.touch(server.uri)
      await until(() => uris().length > 0)
      expect(uris()).toEqual([server.uri])
      expect((await view.read(server.uri).catch(() => ({ contents: ['none'] }))).contents).toHaveLength(1)
    })
  })

describe('a command', () => {
  const commands: Readonly<
    Record<string, { readonly target: ServerTarget; readonly uri: string; readonly root: string }>
  > = {
    'of hikidashi': {
      target: { command: process.execPath, args: [bundled('tests/live-ours')] },
      uri: 'x://r/a',
      root: 'x://r/',
    },
    'of the SDK 2': { target: { command: process.execPath, args: [program, 'official'] }, uri: 'x:a', root: '' },
    'of the SDK 1.24': { target: { command: process.execPath, args: [program, 'sdk124'] }, uri: 'x:a', root: '' },
    'of the SDK 1.0': { target: { command: process.execPath, args: [program, 'sdk100'] }, uri: 'x:a', root: '' },
  }

  test.each(Object.entries(commands))('%s notifies of changes, and is started again when it exits', async (_, its) => {
    const { target, uri, root } = its
    const at = (what: string) => (root === '' ? what.replace('/', ':') : root + what)
    const touched = at(`touch/${root === '' ? uri : 'a'}`)
    const view = await open(target)
    const { subscription, uris, listed, forget } = hear(view)
    expect(await subscription.add([uri])).toEqual([uri])
    expect(await subscription.addList()).toBe(true)
    await view.read(touched)
    await until(() => uris().length > 0)
    await view.read(at('touch/list'))
    await until(() => listed() > 0)
    forget()
    await view.read(at('die/').replace(/\/$/, '')).catch(() => {})
    await until(() => uris().length > 0, 15_000)
    expect(uris()).toEqual([uri])
    expect(listed()).toBe(1)
    forget()
    await view.read(touched)
    await until(() => uris().length > 0)
  })
})
