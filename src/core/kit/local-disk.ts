import { open } from 'node:fs/promises'

/**
 * The `f_type` (statfs(2)) of the file systems that count as local. A system call on a network file system may hang.
 */
const localTypes = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // XFS
  0x9123683e, // Btrfs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x2fc12fc1, // ZFS
  0xf2f52010, // F2FS
  0xca451a4e, // bcachefs
  0x73717368, // SquashFS
  0xe0f5e1e2, // EROFS
  0x4d44, // FAT
  0x2011bab0, // exFAT
])

/** Whether a file system is local, by the `type` of `fs.statfs` on Linux. False on other systems. */
export function isLocalFileSystem(type: number): boolean {
  return process.platform === 'linux' && localTypes.has(type)
}

/** Flushes a folder to its disk (fsync), so that a file renamed in it is still there after a power failure. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows has no descriptors of folders, so nothing is flushed there.
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
