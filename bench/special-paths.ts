/** The special paths of the server, and the guarantees of a read, that `bench/paths.ts` measures. */

export type Work = 'read' | 'list'

export interface SpecialPath {
  readonly name: string
  readonly work: Work
  readonly file: string
  /** The code of the path, which occurs once in the file, and the plain form. */
  readonly replaced: readonly (readonly [code: string, plain: string])[]
}

export const paths: readonly SpecialPath[] = [
  {
    name: 'names are opened on the main thread',
    work: 'read',
    file: 'providers/files/root.ts',
    replaced: [
      ['const isHere = parent.local && !follow && !keeper.hasMounts', 'const isHere = false'],
      ['hold: place, local, isHere: local }', 'hold: place, local }'],
    ],
  },
  {
    name: 'small files are read on the main thread',
    work: 'read',
    file: 'providers/files/root.ts',
    replaced: [['if (local && size <= maxSyncReadBytes)', 'if (size < 0n)']],
  },
  {
    name: 'facts about directories',
    work: 'read',
    file: 'providers/files/place.ts',
    replaced: [
      [
        'const directory = local ? directories.get(stats.ino) : undefined',
        'const directory = stats.ino < 0n && local ? directories.get(stats.ino) : undefined',
      ],
    ],
  },
  {
    name: 'verdicts on names',
    work: 'read',
    file: 'providers/files/index.ts',
    replaced: [
      [
        'cacheVerdicts(createVisibility({ ...options, ...chosen, ...defined({ platform }) }))',
        'createVisibility({ ...options, ...chosen, ...defined({ platform }) })',
      ],
    ],
  },
  {
    name: 'names of translations that may exist',
    work: 'read',
    file: 'providers/files/index.ts',
    replaced: [
      ['let possible = last?.stamps === stamps ? last.translations : undefined', 'let possible = last && undefined'],
    ],
  },
  {
    name: 'entries in groups',
    work: 'list',
    file: 'core/kit/groups.ts',
    replaced: [
      [
        'if (isGrouped(items)) return items[groupsKey]()',
        'if (isGrouped(items) && items[groupsKey] === undefined) return items[groupsKey]()',
      ],
    ],
  },
  {
    name: 'facts of files in watched folders',
    work: 'list',
    file: 'providers/files/list.ts',
    replaced: [
      ['if (confirm === undefined) return undefined', 'if (confirm === undefined || count >= 0) return undefined'],
    ],
  },
  {
    name: 'entries whose facts are all cached',
    work: 'list',
    file: 'providers/files/list.ts',
    replaced: [
      [
        'factsByName === undefined || rules !== undefined ? undefined : cachedEntries(directory, group, factsByName)',
        'factsByName === undefined || rules !== undefined || group.length >= 0 ? undefined : cachedEntries(directory, group, factsByName)',
      ],
    ],
  },
  {
    name: 'lengths of plain texts',
    work: 'list',
    file: 'core/listing.ts',
    replaced: [["if (typeof value === 'string' && /^[ !#-[\\]-~]*$/.test(value)) return value.length + 2", '']],
  },
]

/** What a read guarantees, and what that costs: not to be taken out. */
export const guarantees: readonly SpecialPath[] = [
  {
    name: 'other languages of a document, as of this read',
    work: 'read',
    file: 'providers/files/index.ts',
    replaced: [['if (!isTranslatable(path)) return []', 'if (tags.length > 0 || !isTranslatable(path)) return []']],
  },
  {
    name: 'no other mount inside the root',
    work: 'read',
    file: 'providers/files/root.ts',
    replaced: [
      [
        "const mount = 'mount' in cachedMount || root.mount === undefined ? cachedMount.mount : mountIdOf(descriptor)",
        "const mount = 'mount' in cachedMount ? cachedMount.mount : root.mount",
      ],
    ],
  },
  {
    name: 'one version of a file',
    work: 'read',
    file: 'providers/files/place.ts',
    replaced: [['const after = await handle.stat(signal)', 'const after = stats']],
  },
  {
    name: 'time-out and circuit breaker of a source',
    work: 'read',
    file: 'wrap/limited.ts',
    replaced: [['    read: readResource,\n    ...limitedVerbs', '    read: provider.read,\n    ...limitedVerbs']],
  },
  {
    name: 'strict JSON',
    work: 'read',
    file: 'server/messages/json.ts',
    replaced: [['  checkStructure(text)\n', '']],
  },
]
