-- Notes of what was claimed together in a third of the bytes: several of them share a page, and a batch writes fewer.
-- Those from before stay as they are until they expire; new ones have '[]' in the old columns.
alter table settle_processed_batches add column keys blob;   -- the records' keys, packed as in src/base/packed.hpp
alter table settle_processed_batches add column places blob; -- where they came from, packed as well
