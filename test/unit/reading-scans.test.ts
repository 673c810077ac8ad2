import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { checkOcr } from '../../src/cli/operations/doctor/needs.ts'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig, searchesOf } from '../../src/config/plan.ts'
import { unavailable } from '../../src/core/errors.ts'
import type { Diagnosis } from '../../src/core/kit/diagnosis.ts'
import type { Change, Content, Provider } from '../../src/core/provider.ts'
import { parseSearchAnswer, parseSearchStatus } from '../../src/core/search-answer.ts'
import { findTesseract, readPicture } from '../../src/providers/tesseract.ts'
import { documents } from '../../src/wrap/documents.ts'
import { createScanQueue, type PictureReader, type ScansOptions } from '../../src/wrap/scans.ts'
import { japanesePdf, pdfOf, stream } from '../fixtures/documents/pdf.ts'
import { japaneseScan, pictureOfText, scanOf, scansOf } from '../fixtures/documents/scan.ts'
import { eventually } from '../support/authorized.ts'
import { contextOf } from '../support/folder.ts'
import { memory } from '../support/memory.ts'
import { requires } from '../support/require.ts'

// Each page takes seconds of a busy machine.
vi.setConfig({ testTimeout: 180_000 })

const { signal } = new AbortController()
const installed = await findTesseract(signal)
const hasLanguages = ['eng', 'jpn'].every((language) => installed?.languages.includes(language))
const withTesseract = requires('tesseract', hasLanguages, 'tesseract with eng and jpn is not installed')

const folder = mkdtempSync(join(tmpdir(), 'hikidashi-scans-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const real: PictureReader = {
  missing: async () => undefined,
  read: (picture, until) => readPicture(installed?.program ?? '', ['eng', 'jpn'], picture, until),
}

/** A served PDF. `change` resolves when its reading has changed. */
async function served(bytes: Uint8Array, options: Partial<ScansOptions> | undefined) {
  const stop = new AbortController()
  const source: Provider = {
    ...memory({ 'a.pdf': { bytes, mimeType: 'application/pdf', version: '1' } }),
    watch: async (until) =>
      (async function* (): AsyncGenerator<Change> {
        await new Promise((resolve) => until.addEventListener('abort', resolve))
      })(),
  }
  const scans = options === undefined ? undefined : createScanQueue({ reader: real, ...options })
  const provider = documents(source, { readings: scans === undefined ? {} : { scans } })
  const changes = (await provider.watch?.(stop.signal))?.[Symbol.asyncIterator]()
  ends.push(
    () => stop.abort(),
    () => provider.close?.(),
  )
  return {
    change: async () => (await changes?.next())?.value,
    read: async (): Promise<Content & { readonly text: string }> => {
      const [content] = await provider.read({ path: 'a.pdf', params: new Map([['as', 'text']]) }, contextOf())
      if (content === undefined || !('text' in content)) throw new Error('this is no text')
      return content
    },
  }
}

/** A reader that tells what it was asked for, without a program. */
const fake = (read: PictureReader['read']): Partial<ScansOptions> => ({
  reader: { missing: async () => undefined, read },
})

describe('a PDF without text', () => {
  test('says that it holds only pictures, page by page if other pages have text', async () => {
    const whole = await served(await scanOf(['Invoice']), undefined)
    await expect(whole.read()).rejects.toMatchObject({ kind: 'invalid', detail: { reason: 'unreadable' } })
    await expect(whole.read()).rejects.toThrow('only pictures')
    const mixed = await served(scansOf(['Own text', await pictureOfText(['Invoice'])]), undefined)
    expect(await mixed.read()).toMatchObject({
      text: 'Page 1\n\nOwn text\n\nPage 2\n\n(This page contains no text, only pictures: it may have been scanned.)\n',
      meta: { 'dev.hikidashi/reading': { pictures: 1 } },
    })
  })

  test('with empty pages says so, and is not read by OCR', async () => {
    const read = vi.fn(async () => '')
    const pdf = pdfOf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>',
    ])
    const { read: text } = await served(pdf, fake(read))
    await expect(text()).rejects.toThrow('its pages are empty')
    expect(read).not.toHaveBeenCalled()
  })
})

describe('OCR', () => {
  test('reads one page at a time in the whole process, and tells when it has ended', async () => {
    let [running, most, calls] = [0, 0, 0]
    const options = fake(async () => {
      most = Math.max(most, ++running)
      calls++
      await new Promise((resolve) => setTimeout(resolve, 20))
      running--
      return 'words'
    })
    const bytes = await scanOf(['one'], ['two'])
    const all = await Promise.all([served(bytes, options), served(Buffer.concat([bytes, Buffer.from('\n')]), options)])
    for (const one of all) await expect(one.read()).rejects.toThrow('OCR is reading them')
    for (const one of all) expect(await one.change()).toEqual({ path: 'a.pdf' })
    for (const one of all)
      expect((await one.read()).text).toBe('Page 1 (read by OCR)\n\nwords\n\nPage 2 (read by OCR)\n\nwords\n')
    expect([most, calls]).toEqual([1, 4])
  })

  test('reads pages up to a limit, and each further page says that it was not read', async () => {
    const { read, change } = await served(await scanOf(['one'], ['two'], ['three']), {
      ...fake(async () => 'words'),
      maxPages: 2,
    })
    await expect(read()).rejects.toThrow('OCR is reading')
    await change()
    const { text, meta } = await read()
    expect(text).toMatch(/Page 2 \(read by OCR\)\n\nwords\n\nPage 3\n\n\(This page contains no text/)
    expect(meta).toMatchObject({ 'dev.hikidashi/reading': { ocr: 2, pictures: 1 } })
  })

  test('that fails on every page is an error, and is not begun again at once', async () => {
    const reads = vi.fn(async () => {
      throw unavailable('tesseract failed (it was killed).')
    })
    const { read, change } = await served(await scanOf(['a'], ['b'], ['c'], ['d'], ['e']), fake(reads))
    await expect(read()).rejects.toThrow('OCR is reading')
    await change()
    await expect(read()).rejects.toThrow('OCR of its pages has failed')
    // Three pages, each twice.
    expect(reads).toHaveBeenCalledTimes(6)
    await expect(read()).rejects.toThrow('OCR of its pages has failed')
    expect(reads).toHaveBeenCalledTimes(6)
  })

  test('that fails once on a page reads it again', async () => {
    let calls = 0
    const { read, change } = await served(
      await scanOf(['a']),
      fake(async () => {
        if (++calls === 1) throw unavailable('tesseract failed (it was killed).')
        return 'words'
      }),
    )
    await expect(read()).rejects.toThrow('OCR is reading')
    await change()
    expect((await read()).text).toContain('words')
  })

  test('that fails on a page is not stored, so that it is tried again after a restart; the OCR of all pages up to the limit is stored', async () => {
    const stored: string[] = []
    const kept = { get: async () => undefined, put: async (_: string, path: string) => void stored.push(path) }
    let calls = 0
    const read = async () => {
      // Both tries of the first page of the first document fail.
      if (++calls <= 2) throw unavailable('tesseract failed (it was killed).')
      return 'words'
    }
    for (const size of [3, 4]) {
      const pages = Array.from({ length: size }, (_, page) => [`page ${page}`])
      const document = await served(await scanOf(...pages), { ...fake(read), maxPages: 2, kept })
      await expect(document.read()).rejects.toThrow('OCR is reading')
      await document.change()
      expect(await document.read()).toMatchObject({ meta: { 'dev.hikidashi/reading': { ocr: size === 3 ? 1 : 2 } } })
      expect(stored).toHaveLength(size === 3 ? 0 : 1)
    }
  })

  test('that is missing makes each read fail with an error that says so, and is logged once', async () => {
    const log = vi.fn()
    const reader = { missing: async () => 'tesseract is not there.', read: async () => '' }
    const { read } = await served(await scanOf(['a']), { reader, log })
    for (let i = 0; i < 2; i++) await expect(read()).rejects.toThrow('OCR is not available now')
    expect(log).toHaveBeenCalledTimes(1)
  })

  test('draws a page of any size within its limit of pixels', async () => {
    const sizes: number[] = []
    for (const box of ['0 0 14400 14400', '0 0 1000000 1', '0 0 0.01 0.01']) {
      const page = pdfOf([
        '<< /Type /Catalog /Pages 2 0 R >>',
        '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
        `<< /Type /Page /Parent 2 0 R /MediaBox [${box}] /Contents 4 0 R >>`,
        stream(Buffer.from('0 0 9 9 re f')),
      ])
      const { read, change } = await served(
        page,
        fake(async ({ pgm }) => {
          sizes.push(pgm.length)
          return 'words'
        }),
      )
      await read().catch(() => {})
      await change()
    }
    expect(sizes).toHaveLength(3)
    expect(Math.max(...sizes)).toBeLessThan(20_000_100)
  })
})

test.skipIf(process.platform === 'win32')(
  'a program for OCR that is killed, fails, writes a file or writes endlessly gives an error, and it gets no HOME',
  async () => {
    const picture = await pictureOfText(['Invoice'])
    const program = (script: string) => {
      const file = join(folder, 'program')
      writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o700 })
      return file
    }
    const outcome = (script: string, until = signal) => readPicture(program(script), ['eng'], picture, until)
    await expect(outcome('kill -9 $$')).rejects.toThrow('it was killed')
    await expect(outcome('exit 3')).rejects.toThrow('exit code 3')
    await expect(outcome('while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done')).rejects.toThrow(
      'wrote more than 1048576 bytes',
    )
    await expect(outcome(`echo x > ${join(folder, 'written')}`)).rejects.toThrow(/killed|exit code/)
    const stop = new AbortController()
    const reading = outcome('sleep 600 & wait', stop.signal)
    setTimeout(() => stop.abort(new Error('closed')), 500)
    await expect(reading).rejects.toThrow('closed')
    expect(await outcome('cat >/dev/null; env | sort | tr "\\n" " "')).not.toContain('HOME=')
  },
)

withTesseract('OCR by tesseract', () => {
  test('reads English and Japanese scans', async () => {
    const english = await served(await scanOf(['Invoice number 48213', 'The total is 1250 euros']), {})
    await expect(english.read()).rejects.toThrow('OCR is reading')
    await english.change()
    expect((await english.read()).text).toBe('Page 1 (read by OCR)\n\nInvoice number 48213\nThe total is 1250 euros\n')
    const japanese = await served(await japaneseScan('田中日中'), {})
    await expect(japanese.read()).rejects.toThrow('OCR is reading')
    await japanese.change()
    expect((await japanese.read()).text.replace(/\s/g, '')).toContain('田中日中')
  })

  test('ends when it is aborted, and fails without a valid picture', async () => {
    const stop = new AbortController()
    const picture = await pictureOfText(['Invoice'])
    const reading = readPicture(installed?.program ?? '', ['eng'], picture, stop.signal)
    stop.abort(new Error('closed'))
    await expect(reading).rejects.toThrow('closed')
    const none = { pgm: Buffer.from('P5\n99999999 99999999\n255\n'), dpi: 300 }
    await expect(readPicture(installed?.program ?? '', ['eng'], none, signal)).rejects.toMatchObject({
      kind: 'unavailable',
    })
  })

  const secret = 'hunter47breakfast'
  const open = async (redact: string) => {
    writeFileSync(
      join(folder, 'a.json'),
      JSON.stringify({
        mounts: {
          'docs://scans': { provider: 'files', root: 'docs', redact, readings: { ocr: { languages: ['eng'] } } },
          'search://scans': { provider: 'search', over: ['docs://scans'] },
        },
        store: { sqlite: `${redact}.sqlite` },
      }),
    )
    const loaded = await loadConfig(join(folder, 'a.json'))
    if (!('config' in loaded)) throw new Error(JSON.stringify(loaded.problems))
    const catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store: loaded.config.store })
    const view = catalog.view({ id: 'local', roles: [] })
    const read = async (uri: string) => {
      const [content] = (await view.read(uri)).contents
      return content !== undefined && 'text' in content ? content.text : ''
    }
    return { catalog, read }
  }

  test.each(['off', 'mask'])('feeds the index, and its result survives a restart, with redact %s', async (redact) => {
    mkdirSync(join(folder, 'docs'), { recursive: true })
    writeFileSync(join(folder, 'docs/scan.pdf'), await scanOf(['Invoice of the harbour', `password: ${secret}`]))
    const first = await open(redact)
    for (const { provider } of searchesOf(first.catalog)) provider.feed()
    const find = async () => parseSearchAnswer(await first.read('search://scans?q=harbour'))
    const answer = await eventually(find, (found) => (found?.hits.length ?? 0) > 0, 120_000)
    expect(answer?.hits[0]?.document).toBe('docs://scans/scan.pdf')
    const status = parseSearchStatus(await first.read('search://scans/status.json'))
    expect(status?.mounts[0]?.partial).toBeUndefined()
    await first.catalog.close()
    const path = process.env.PATH
    ends.push(() => {
      process.env.PATH = path
    })
    // Without the program, only the kept result can be read.
    process.env.PATH = folder
    const second = await open(redact)
    const text = await second.read('docs://scans/scan.pdf?as=text')
    await second.catalog.close()
    expect(text).toContain('Invoice of the harbour')
    const stored = readFileSync(join(folder, `${redact}.sqlite`), 'latin1')
    expect(stored).toContain('Invoice of the harbour')
    for (const shown of [text, stored]) expect(shown.includes(secret)).toBe(redact === 'off')
  })
})

test('doctor tells whether tesseract and its languages are there, if a mount asks for OCR', async () => {
  const told: Diagnosis[] = []
  const ask = async (languages: readonly string[] | undefined) => {
    told.length = 0
    const readings = languages === undefined ? true : { ocr: { languages } }
    const mount = { address: 'docs://a', config: { provider: 'files', root: '.', readings }, folder: '.' }
    const here = { mounts: [mount], positionOf: () => 'hikidashi.json:1' } as unknown as Parameters<typeof checkOcr>[0]
    await checkOcr(here, { tell: (check, found) => void told.push({ check, ...found }), doing: () => {} })
    return told.map(({ status }) => status)
  }
  expect(await ask(undefined)).toEqual([])
  expect((await ask(['xx_none'])).at(-1)).toBe('warning')
  expect(told.at(-1)).toMatchObject({ found: expect.stringContaining('scans are not read') })
  const path = process.env.PATH
  process.env.PATH = folder
  try {
    expect(await ask(['jpn'])).toEqual(['warning'])
    expect(told[0]).toMatchObject({ found: expect.stringContaining('tesseract is not on the PATH') })
    if (process.platform === 'linux') expect(told[0]?.fix).toContain('apt install tesseract-ocr tesseract-ocr-jpn')
  } finally {
    process.env.PATH = path
  }
})

test('a Japanese PDF with text of its own is not read by OCR', async () => {
  const read = vi.fn(async () => '')
  const { read: text } = await served(japanesePdf([['引き出し']]), fake(read))
  expect((await text()).text).toBe('Page 1\n\n引き出し\n')
  expect(read).not.toHaveBeenCalled()
})
