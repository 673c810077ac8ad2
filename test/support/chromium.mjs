import { chromium } from 'playwright-core'

// One Chromium for a run of tests, as a process of its own: `chromium.ts` starts it. Its arguments: the program, and what it is
// started with, as JSON. It prints where to connect, and ends with its input.

const [executablePath, args = '[]'] = process.argv.slice(2)
const server = await chromium.launchServer({ executablePath, args: JSON.parse(args), host: '127.0.0.1' })
process.stdout.write(`${server.wsEndpoint()}\n`)
process.stdin.resume().once('close', async () => {
  await server.close()
  process.exit()
})
