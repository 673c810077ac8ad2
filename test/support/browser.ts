import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Frame,
  type Page,
  type Request,
} from 'playwright-core'
import { afterEach, beforeAll, expect } from 'vitest'
import { type Running, type RunOptions, start } from './cli.ts'
import { listening } from './listening.ts'
import { isThorough, someOf } from './volume.ts'

// A real Chromium for tests of the explorer: one for all test files of a process, with a fresh profile for each page.

const found = findChromium()

/**
 * The disabled features of Chromium. This list replaces that of Playwright, which it includes. The WebUI features are hidden
 * pages below the address bar that each tab draws, which took as long as the page under test.
 */
const disabledFeatures = [
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'LensOverlay'],
  ...['HttpsFirstBalancedModeAutoEnable', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning'],
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'TcpPortRandomizationWin', 'OptimizationHints'],
  ...['NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch'],
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
]

/** With this policy a tab gets a second process for its first document, which takes 0.08 s of CPU. */
const openerPolicy = 'CrossOriginOpenerPolicy'

/** Whether Chromium is installed, for `requires('chromium', hasChromium, chromiumReason)`. */
export const hasChromium = found !== undefined
export const chromiumReason =
  'there is no Chromium; on Debian: apt-get install chromium-headless-shell fonts-noto-cjk, or name one in HIKIDASHI_CHROMIUM'

function findChromium(): string | undefined {
  const named = process.env.HIKIDASHI_CHROMIUM
  if (named !== undefined && named !== '') return existsSync(named) ? named : undefined
  const folders = ['/usr/bin', ...(process.env.PATH ?? '').split(delimiter)]
  // The headless shell is the same engine without a user interface, and took 1.4 s of CPU instead of 3.9 s.
  const shell = 'chromium-headless-shell'
  const names = [shell, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file))
}

export interface OpenOptions extends BrowserContextOptions {
  /** Expected complaints of the browser in this test, such as an answer of 401. By default none. */
  readonly allowed?: readonly RegExp[]
}

export interface Tabs {
  /** Opens an address in its own profile. When the test ends, it is closed, and its complaints are checked. */
  open(url: string, options?: OpenOptions): Promise<Page>
  /** Creates a profile, for tests with several pages, or with steps before an address is opened. */
  profile(options?: OpenOptions): Promise<BrowserContext>
  /** Returns and removes the complaints of the browser so far, which the test then checks. */
  complaints(): readonly string[]
}

/** Browsers by whether they apply the policy on openers. */
const launched = new Map<boolean, Promise<Browser>>()
/** Receives requests of browsers to other machines. */
let tellFault = (_: string) => {}

/** Returns the browser of this process, which ends with the process: starting one takes more than a second of CPU. */
async function browserHere(executablePath: string, parts: boolean): Promise<Browser> {
  const before = await launched.get(parts)?.catch(() => undefined)
  if (before?.isConnected()) return before
  const launching = launch(executablePath, parts)
  launched.set(parts, launching)
  return launching
}

async function launch(executablePath: string, parts: boolean): Promise<Browser> {
  // All other host names resolve to this server, so that every request of the browser to another machine is noticed. Requests of
  // Chromium itself for updates and accounts fail.
  const world = createServer((request, response) => {
    tellFault(`asked elsewhere: ${request.headers.host}${request.url}`)
    response.end()
  })
  world.on('connection', () => tellFault('connected elsewhere'))
  const elsewhere = await listening(world)
  const rules = [
    ...['*.google.com', '*.googleapis.com', '*.gvt1.com'].map((name) => `MAP ${name} ~NOTFOUND`),
    `MAP * 127.0.0.1:${elsewhere.port}`,
    ...['127.0.0.1', 'localhost'].map((name) => `EXCLUDE ${name}`),
  ]
  const args = [
    `--host-resolver-rules=${rules.join(', ')}`,
    `--disable-features=${[...disabledFeatures, ...(parts ? [] : [openerPolicy])].join()}`,
  ]
  // Chromium cannot run its own sandbox as root, the user of containers.
  if (process.getuid?.() === 0) args.push('--no-sandbox')
  const browser = await chromium.launch({ executablePath, args })
  browser.once('disconnected', () => void elsewhere.close())
  return browser
}

/**
 * A browser for the tests of a file. A test fails if its page throws, writes an error to the console, opens a dialog, breaks its
 * Content-Security-Policy, or sends a request to another server.
 * @param parts Whether it separates a page from its opener, if the page has that policy: by default in thorough runs only.
 */
export function useBrowser(parts = isThorough): Tabs {
  let browser: Browser | undefined
  const contexts: BrowserContext[] = []
  const faults: string[] = []

  beforeAll(async () => {
    if (found === undefined) return
    tellFault = (fault) => void faults.push(fault)
    browser = await browserHere(found, parts)
  })
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()))
    expect(faults.splice(0), 'what the browser complained of').toEqual([])
  })

  const profile = async ({ allowed = [], ...options }: OpenOptions = {}): Promise<BrowserContext> => {
    if (browser === undefined) throw new Error(chromiumReason)
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-US', ...options })
    context.setDefaultTimeout(15_000)
    contexts.push(context)
    const blame = (fault: string) => {
      if (!allowed.some((pattern) => pattern.test(fault))) faults.push(fault)
    }
    // Chromium reports violations of a policy as errors too.
    context.on('console', (message) => {
      if (message.type() === 'error') blame(`${message.text()} (${message.location().url})`)
    })
    context.on('weberror', (error) => blame(`thrown: ${error.error().stack ?? error.error().message}`))
    context.on('dialog', (dialog) => {
      blame(`asked the reader: ${dialog.message()}`)
      dialog.dismiss().catch(() => {})
    })
    // Chromium may report a request that a policy blocked, and then a failure of the same request.
    const judge = (request: Request) => {
      if (!isOwn(request.url()) && request.failure()?.errorText !== 'csp') blame(`asked elsewhere: ${request.url()}`)
    }
    context.on('requestfinished', judge)
    context.on('requestfailed', judge)
    return context
  }

  return {
    profile,
    complaints: () => faults.splice(0),
    open: async (url, options) => {
      const page = await (await profile(options)).newPage()
      await page.goto(url)
      return page
    },
  }
}

/** Requests to this machine are allowed: no other server runs on it. */
function isOwn(url: string): boolean {
  return /^(?:blob:|data:|about:)/.test(url) || /^http:\/\/(?:127\.0\.0\.1|localhost):\d+\//.test(url)
}

/** A server with an explorer, started like a user does. */
export interface Explored {
  /** The address of the page, with a slash at its end. */
  readonly url: string
  readonly running: Running
  end(): Promise<void>
}

/** Starts `hikidashi serve … --http 0` from `dist`. */
export async function serveExplorer(args: readonly string[], options: RunOptions): Promise<Explored> {
  const running = start(['serve', ...args, '--http', '0', '--log-level', 'error'], options)
  return explored(running, /Explore it in a browser: (\S+)/)
}

/** Waits until a command has printed the address of its page. */
export async function explored(running: Running, pattern: RegExp): Promise<Explored> {
  const [, url = ''] = await running.says(pattern)
  return {
    url,
    running,
    end: async () => {
      running.child.kill('SIGTERM')
      await running.ended
    },
  }
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly help: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

const axeSource = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const axeRules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** Returns the violations that axe finds in the document of one frame, such as that of an app. */
export async function axeIn(frame: Frame): Promise<readonly string[]> {
  const run = `${axeSource()}; axe.run(document, { runOnly: ${JSON.stringify(axeRules)}, resultTypes: ['violations'] })`
  const { violations } = (await frame.evaluate(run)) as AxeResults
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id}: ${help}\n  ${html}`))
}

/** The last test that checked accessibility, and the number of its checked states. */
let looked = { test: '', states: 0 }

/**
 * Whether axe checks this state of a page, which takes half a second of CPU. In a tenth of the volume, it checks a quarter of
 * them.
 */
function isLookedAt(): boolean {
  const test = expect.getState().currentTestName ?? ''
  looked = { test, states: looked.test === test ? looked.states + 1 : 1 }
  return someOf(`${test} ${looked.states}`, [true, false, false, false]).includes(true)
}

/**
 * Returns the violations of WCAG 2.2 AA on the current page: each rule with its elements. axe is injected by the debugger, so the
 * policy of the page stays strict.
 */
export async function axe(page: Page): Promise<readonly string[]> {
  if (!isLookedAt()) return []
  const session = await page.context().newCDPSession(page)
  try {
    await session.send('Runtime.evaluate', { expression: `${axeSource()}; undefined` })
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      // Frames of previews run no scripts, so axe cannot check them.
      expression: `axe.run(document, { iframes: false, runOnly: ${JSON.stringify(axeRules)}, resultTypes: ['violations'] })`,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined) throw new Error(`axe failed: ${exceptionDetails.exception?.description}`)
    return (result.value as AxeResults).violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary = '' }) => `${id}: ${help}\n  ${html}\n  ${failureSummary}`),
    )
  } finally {
    await session.detach()
  }
}
