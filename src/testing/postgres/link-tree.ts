import type { Dirent } from 'node:fs'
import { chmod, copyFile, link, mkdir, readdir, readlink, stat, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'

/** Every user may read and enter; the files are programs and their data. */
const openMode = 0o755
const readableByAll = 0o004

/**
 * Puts the tree `source` also at `target`, readable by every user: by hard links, which take no time and no space, and
 * by copies where links are not possible (another file system) or would not be readable.
 */
export async function linkTree(source: string, target: string): Promise<void> {
  const entries = await readdir(source, { recursive: true, withFileTypes: true })
  const place = (entry: Dirent): string => join(target, relative(source, join(entry.parentPath, entry.name)))
  for (const directory of [target, ...entries.filter((entry) => entry.isDirectory()).map(place)]) {
    await mkdir(directory, { recursive: true })
    await chmod(directory, openMode) // whatever the umask
  }
  const files = entries.filter((entry) => !entry.isDirectory())
  await Promise.all(files.map(async (entry) => await put(entry, place(entry))))
}

async function put(entry: Dirent, target: string): Promise<void> {
  const source = join(entry.parentPath, entry.name)
  if (entry.isSymbolicLink()) return await symlink(await readlink(source), target)
  const { mode } = await stat(source)
  if ((mode & readableByAll) !== 0 && (await tryLink(source, target))) return
  await copyFile(source, target)
  await chmod(target, openMode)
}

async function tryLink(source: string, target: string): Promise<boolean> {
  return await link(source, target).then(
    () => true,
    () => false, // the copy that follows reports what is really wrong
  )
}
