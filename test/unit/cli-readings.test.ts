import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatDocument } from '../fixtures/documents/open-document.ts'
import { annotatedPdf } from '../fixtures/documents/pdf.ts'
import { scanOf } from '../fixtures/documents/scan.ts'
import { runHere } from '../support/cli-here.ts'

// Documents that are text as they are written, and that a person reads in another form: the index and contexts take their readings.

/** A word of the reading of each document, and a part of its source that no reading has. */
const documents = {
  'analysis.ipynb': { word: 'marmoset', source: 'nbformat' },
  'plain.pdf': { word: 'tamarin', source: 'startxref' },
  'letter.eml': { word: 'gibbon', source: 'octets' },
  'note.rtf': { word: 'macaque', source: 'fonttbl' },
  'old.doc': { word: 'mandrill', source: 'fonttbl' },
  'report.fodt': { word: 'langur', source: 'oasis' },
}
const picture = Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 7919) % 256)).toString('base64')

describe('a document in a plain-text notation', () => {
  let cwd = ''
  beforeAll(() => {
    cwd = mkdtempSync(join(tmpdir(), 'hikidashi-readings-'))
    const cells = [
      { cell_type: 'markdown', source: ['# Monkeys\n', 'The marmoset is small.'] },
      {
        cell_type: 'code',
        source: 'plot(heights)',
        outputs: [{ output_type: 'display_data', data: { 'image/png': picture, 'text/plain': '<Figure>' } }],
      },
    ]
    writeFileSync(join(cwd, 'analysis.ipynb'), JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells }))
    // The comment after the first line marks a PDF as binary. Without it, all of this one is ASCII.
    const pdf = annotatedPdf([], [], '', 'The tamarin is smaller.')
      .toString('latin1')
      .replace(/[\x80-\xff]/g, 'x')
    writeFileSync(join(cwd, 'plain.pdf'), pdf, 'latin1')
    const body = Buffer.from('The gibbon sings.\n').toString('base64')
    const head = 'Subject: Apes\nX-Size: octets\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n'
    writeFileSync(join(cwd, 'letter.eml'), `${head}\n${body}\n`)
    for (const [file, word] of [
      ['note.rtf', 'macaque'],
      ['old.doc', 'mandrill'],
    ] as const)
      writeFileSync(
        join(cwd, file),
        `{\\rtf1{\\fonttbl{\\f0 Arial;}}The ${word.slice(0, 3)}{\\b ${word.slice(3)}} climbs.\\par}`,
      )
    writeFileSync(join(cwd, 'report.fodt'), flatDocument('text', '<text:p>The langur eats leaves.</text:p>'))
    writeFileSync(join(cwd, 'other.md'), 'Nothing about animals.\n')
  })
  afterAll(() => rmSync(cwd, { recursive: true, force: true }))

  test.each(Object.entries(documents))(
    'is found by the words of its converted text, and not by its notation: %s',
    async (file, { word, source }) => {
      const { out, code } = await runHere(['search', word, '--json'], { cwd })
      expect(code).toBe(0)
      expect(out).toContain(file)
      expect(out).not.toContain(picture.slice(0, 40))
      const { out: none } = await runHere(['search', source, '--json'], { cwd })
      expect(none).not.toContain(file)
      const { out: encoded } = await runHere(['search', picture.slice(0, 12), '--json'], { cwd })
      expect(encoded).not.toContain(file)
    },
  )

  test.each(Object.entries(documents))('is packed as its converted text: %s', async (file, { word, source }) => {
    for (const words of [
      ['pack', `What is said of the ${word}?`],
      ['pack', '--pin', file],
    ]) {
      const { out, code, err } = await runHere(words, { cwd })
      expect(code, err).toBe(0)
      expect(out).toContain(word)
      expect(out).not.toContain(source)
      expect(out).not.toContain(picture.slice(0, 40))
    }
  })
})

test('a PDF that contains only pictures is reported as such by read, search and pack', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'hikidashi-readings-'))
  try {
    writeFileSync(join(cwd, 'capuchin.pdf'), await scanOf(['The capuchin climbs.']))
    const read = await runHere(['read', 'capuchin.pdf', '--as', 'text'], { cwd })
    expect(read.code).not.toBe(0)
    expect(read.err).toContain('contains no text, only pictures')
    const found = await runHere(['search', 'capuchin', '--json'], { cwd })
    expect(found.out).toContain('capuchin.pdf')
    expect(found.out).toContain('has pages that hold only pictures or unreadable text, which are not searched.')
    const { err } = await runHere(['pack', '--pin', 'capuchin.pdf'], { cwd })
    expect(err).toMatch(/Note: a link alone, because the text cannot be read .*only pictures.*capuchin\.pdf/)
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
})

test('a search finds a word in the last third of a text of 1.5 MB', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'hikidashi-readings-'))
  try {
    const line = 'Nothing is said about animals in this line.\n'
    const lines = Array.from({ length: Math.ceil(1_500_000 / line.length) }, () => line)
    lines[Math.floor(lines.length * 0.9)] = 'The saki is shy.\n'
    writeFileSync(join(cwd, 'long.txt'), lines.join(''))
    const { out, code } = await runHere(['search', 'saki', '--json'], { cwd })
    expect(code).toBe(0)
    expect(out).toContain('The saki is shy.')
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
})
