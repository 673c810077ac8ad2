import { readFile, stat } from 'node:fs/promises'
import { comparePaths, notFound, ResourceError } from 'hikidashi'
import { defineSource, option, refusal } from 'hikidashi/source'

/** A notebook is a JSON file: { "TITLE": { "text": "…", "tags": ["…"] } }. Each of its notes is a document. */
async function notesIn(file) {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(file, 'utf8'), stat(file)])
    const notes = Object.entries(JSON.parse(text)).map(([title, note]) => ({ path: pathOf(title), title, ...note }))
    // The order of paths is that of their UTF-8 bytes, which is not the order of sort().
    return { notes: notes.sort((a, b) => comparePaths(a.path, b.path)), modified: Math.trunc(mtimeMs) }
  } catch (cause) {
    // What the source cannot give at the moment is unavailable: a later request may succeed.
    throw new ResourceError('unavailable', 'The notebook cannot be read.', {}, { cause })
  }
}

const pathOf = (title) => `${title.trim().replace(/[\s/\\\p{Cc}]+/gu, '-')}.md`

export const source = defineSource({
  name: 'notebook',
  noun: 'notes',
  icon: 'text',
  about: 'The notes of a notebook in a JSON file.',
  options: {
    file: option.text().describe('The file of the notebook. A relative path starts at the configuration file.'),
    tag: option
      .text()
      .refine((tag) => !tag.startsWith('#'), {
        error: refusal('A tag is written without its #.', 'Remove the "#".'),
      })
      .optionalKey('Serves only notes with this tag. By default all.'),
  },
  needs: { file: 'file' },
  open({ file, tag }, { path }) {
    const find = async (signal) => {
      signal.throwIfAborted()
      const { notes, modified } = await notesIn(path(file))
      const served = notes.filter(({ tags = [] }) => tag === undefined || tags.includes(tag))
      return served.map(({ title, path, text }) => ({
        entry: { path, title, mimeType: 'text/markdown', size: Buffer.byteLength(text), modified },
        text,
      }))
    }
    return {
      async *list({ prefix = '', after }, { signal }) {
        for (const { entry } of await find(signal))
          if (entry.path.startsWith(prefix) && (after === undefined || comparePaths(entry.path, after) > 0)) yield entry
      },
      async read({ path }, { signal }) {
        const note = (await find(signal)).find(({ entry }) => entry.path === path)
        if (note === undefined) throw notFound()
        return [{ text: note.text, mimeType: note.entry.mimeType, modified: note.entry.modified }]
      },
    }
  },
})
