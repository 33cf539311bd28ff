"""The SQLite schema: what brings a file from each version to the next. Nothing else lives here.

Times are seconds since the epoch, as everywhere in this package. Triggers refuse what must never happen to the trail
and to a record (W5.3, W5.4), whatever program writes.
"""

from typing import Final

__all__ = ["MIGRATIONS"]

MIGRATIONS: Final = (
    """
    CREATE TABLE history (
        number INTEGER PRIMARY KEY, operation_id TEXT NOT NULL, before TEXT, after TEXT NOT NULL,
        entry BLOB NOT NULL, hash TEXT NOT NULL
    );
    CREATE INDEX history_by_operation ON history (operation_id, number);
    CREATE TRIGGER history_goes_on BEFORE INSERT ON history
        WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM history)
        BEGIN SELECT RAISE(ABORT, 'history is append-only: the next entry comes after the last'); END;
    CREATE TRIGGER history_is_not_edited BEFORE UPDATE ON history
        BEGIN SELECT RAISE(ABORT, 'history is append-only: an entry is never edited'); END;
    CREATE TRIGGER history_is_not_deleted BEFORE DELETE ON history
        BEGIN SELECT RAISE(ABORT, 'history is append-only: an entry is never deleted'); END;

    CREATE TABLE operation (
        operation_id TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, remote_job_id TEXT,
        wake_at REAL, lease_owner TEXT, lease_fence INTEGER NOT NULL DEFAULT 0,
        lease_until REAL, history_number INTEGER NOT NULL, record BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX operation_by_wake ON operation (wake_at) WHERE wake_at IS NOT NULL;
    CREATE INDEX operation_by_job ON operation (remote_job_id) WHERE remote_job_id IS NOT NULL;
    CREATE TRIGGER operation_starts_with_history BEFORE INSERT ON operation
        WHEN NOT EXISTS (SELECT 1 FROM history WHERE number = NEW.history_number
                         AND operation_id = NEW.operation_id AND before IS NULL AND after = NEW.state)
        OR EXISTS (SELECT 1 FROM operation WHERE operation_id = NEW.operation_id)  -- INSERT OR REPLACE
        BEGIN SELECT RAISE(ABORT, 'an operation starts with a history entry'); END;
    CREATE TRIGGER operation_goes_on BEFORE UPDATE ON operation
        WHEN NEW.operation_id <> OLD.operation_id OR NEW.history_number < OLD.history_number
            OR NEW.lease_fence < OLD.lease_fence
        BEGIN SELECT RAISE(ABORT, 'an operation keeps its id, and its history and fence only go on'); END;
    CREATE TRIGGER operation_moves_with_history BEFORE UPDATE ON operation
        WHEN NEW.state <> OLD.state AND NOT EXISTS (
            SELECT 1 FROM history WHERE operation_id = NEW.operation_id AND number > OLD.history_number
            AND number <= NEW.history_number AND before = OLD.state AND after = NEW.state)
        BEGIN SELECT RAISE(ABORT, 'a state changes only with a history entry'); END;
    CREATE TRIGGER operation_is_not_deleted BEFORE DELETE ON operation
        BEGIN SELECT RAISE(ABORT, 'an operation is never deleted'); END;

    CREATE TABLE command (
        number INTEGER PRIMARY KEY, operation_id TEXT NOT NULL, command BLOB NOT NULL, taken INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX command_waiting ON command (operation_id, number) WHERE taken = 0;
    CREATE TABLE event (event_id TEXT PRIMARY KEY, remote_job_id TEXT NOT NULL, notice BLOB NOT NULL,
                        operation_id TEXT) WITHOUT ROWID;
    CREATE INDEX event_without_operation ON event (remote_job_id) WHERE operation_id IS NULL;
    CREATE TABLE result (operation_id TEXT PRIMARY KEY, body BLOB NOT NULL);
    """,
)
"""What brings a store from each schema version to the next."""
