// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @title A token that misbehaves when it is moved
contract HostileToken {
    /// @notice What a transfer does.
    enum Manner {
        Honest,
        ReturnsNothing,
        ReturnsMuch, // true and 32 KiB more
        ReturnsFalse,
        MovesNothing, // and still returns true
        Reverts,
        RevertsWithMuch, // 32 KiB
        BurnsGas,
        HidesBalances, // balanceOf reverts with 32 KiB
        BurnsAtBalances, // balanceOf burns the gas
        CallsBack // makes the armed call first, once
    }

    Manner public manner;
    address public target;
    bytes public payload;
    bool public attempted;
    bool public succeeded;
    mapping(address holder => uint256) public holdings;
    mapping(address holder => bool) public blacklisted;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    /// @param holder Holds all tokens initially.
    constructor(address holder) {
        holdings[holder] = 1e15;
    }

    function behave(Manner manner_) external {
        manner = manner_;
    }

    /// @notice Sets the call that is made inside the next transfer or deployment.
    function arm(address target_, bytes calldata payload_) external {
        manner = Manner.CallsBack;
        target = target_;
        payload = payload_;
        attempted = false;
    }

    function blacklist(address holder, bool on) external {
        blacklisted[holder] = on;
    }

    function balanceOf(address holder) external view returns (uint256) {
        if (manner == Manner.HidesBalances) _revertWithMuch();
        if (manner == Manner.BurnsAtBalances) _burn();
        return holdings[holder];
    }

    function transfer(address to, uint256 value) external returns (bool) {
        if (manner == Manner.ReturnsFalse) return false;
        _misbehave();
        if (manner != Manner.MovesNothing) _move(msg.sender, to, value);
        if (manner == Manner.ReturnsNothing) {
            assembly {
                return(0, 0)
            }
        }
        if (manner == Manner.ReturnsMuch) {
            assembly {
                mstore(0, 1)
                return(0, 0x8020)
            }
        }
        return true;
    }

    /// @notice Accepts any signature.
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256,
        uint256,
        bytes32 nonce,
        uint8,
        bytes32,
        bytes32
    ) external {
        _misbehave();
        emit AuthorizationUsed(from, nonce);
        _move(from, to, value);
    }

    /// @notice Misbehaves as a factory of accounts.
    function deploy() external {
        _misbehave();
    }

    function _misbehave() private {
        if (manner == Manner.Reverts) revert("no");
        if (manner == Manner.RevertsWithMuch) _revertWithMuch();
        if (manner == Manner.BurnsGas) _burn();
        if (manner == Manner.CallsBack && !attempted) {
            attempted = true;
            (succeeded,) = target.call(payload);
        }
    }

    function _move(address from, address to, uint256 value) private {
        require(!blacklisted[from] && !blacklisted[to], "blacklisted");
        holdings[from] -= value;
        holdings[to] += value;
        emit Transfer(from, to, value);
    }

    function _revertWithMuch() private pure {
        assembly {
            revert(0, 0x8000)
        }
    }

    function _burn() private pure {
        assembly {
            invalid()
        }
    }
}
